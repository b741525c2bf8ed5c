"""The commands behind ``svc org``, ``svc keys`` and ``svc users``: what they show, change and refuse."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from accounts.keys import keys
from accounts.keys.keys import KeyStatus
from accounts.models import ApiKey, AuditEntry, Organization, Scope, User
from core import clock
from svc_project import command_line
from svc_project.command_line import GROUPS
from tests.support.ledger.commands import run, run_json

pytestmark = pytest.mark.django_db

ACME = "--organization=Acme"


def test_organizations_are_listed_and_shown(organization: Organization) -> None:
    Organization.objects.create(name="Zeta", plan="enterprise", disabled_at=clock.now())
    for _ in range(2):
        keys.mint(organization, Scope.READ)
    keys.revoke(keys.mint(organization, Scope.READ).api_key)

    acme, zeta = run_json("list_organizations")
    assert (acme["name"], acme["status"], acme["working_keys"]) == ("Acme", "enabled", 2)
    assert (acme["requests_per_minute"], acme["tokens_per_minute"]) == (60, "unlimited")
    assert (zeta["name"], zeta["status"], zeta["plan"]) == ("Zeta", "disabled", "enterprise")
    assert run_json("show_organization", "Acme") == acme
    assert run_json("show_organization", str(organization.pk)) == acme
    head, *lines = run("list_organizations").splitlines()
    assert head.split()[:3] == ["name", "organization_id", "status"]
    assert [line.split()[0] for line in lines] == ["Acme", "Zeta"]
    assert "tokens_per_minute           unlimited" in run("show_organization", "Acme")


def test_an_organization_is_disabled_and_enabled(organization: Organization) -> None:
    assert run_json("disable_organization", "Acme")["status"] == "disabled"
    since = Organization.objects.get().disabled_at
    assert run_json("disable_organization", "Acme")["status"] == "disabled"
    assert Organization.objects.get().disabled_at == since, "once is enough"
    assert run_json("enable_organization", "Acme")["status"] == "enabled"
    verbs = AuditEntry.objects.filter(subject="Acme").order_by("at").values_list("verb", flat=True)
    assert list(verbs) == ["created", "disabled", "enabled"]


def test_one_that_was_to_end_later_is_disabled_now(organization: Organization) -> None:
    organization.disabled_at = clock.now() + timedelta(days=1)
    organization.save()
    assert run_json("show_organization", "Acme")["status"] == "enabled"
    assert run_json("disable_organization", "Acme")["status"] == "disabled"


def test_limits_change_only_what_is_given(organization: Organization) -> None:
    shown = run_json("limit_organization", "Acme", "--tokens-per-minute=99", "--plan=enterprise")
    assert (shown["tokens_per_minute"], shown["plan"]) == (99, "enterprise")
    assert (shown["requests_per_minute"], shown["diagnostic_captures"]) == (60, True)
    shown = run_json("limit_organization", "Acme", "--diagnostic-captures=no")
    assert (shown["tokens_per_minute"], shown["diagnostic_captures"]) == (99, False)
    for wrong in (
        ["Nobody", "--plan=standard"],
        ["Acme"],
        ["Acme", "--requests-per-minute=0"],
        ["Acme", "--diagnostic-captures=maybe"],
    ):
        with pytest.raises(CommandError):
            run("limit_organization", *wrong)
    assert [each.name for each in Organization.objects.all()] == ["Acme"]


def test_keys_are_listed_without_secrets(organization: Organization) -> None:
    made = run_json(
        *("create_key", "Acme", "--scope=inference", "--label=shop"),
        *("--requests-per-minute=7", "--expires-at=2099-01-31T00:00:00Z"),
    )
    ended = keys.mint(organization, Scope.READ, "old").api_key
    keys.revoke(ended)

    (key,) = run_json("list_keys", "Acme")
    assert (key["api_key_id"], key["prefix"]) == (made["api_key_id"], made["prefix"])
    assert (key["label"], key["scope"], key["status"]) == ("shop", "inference", "expiring")
    assert (key["requests_per_minute"], key["tokens_per_minute"]) == (7, None)
    assert key["expires_at"] == "2099-01-31T00:00:00.000Z"
    assert [each["label"] for each in run_json("list_keys", "Acme", "--ended")] == ["old"]
    assert made["key"] not in run("list_keys", "Acme")
    with pytest.raises(CommandError, match="--expires-at"):
        run("create_key", "Acme", "--scope=read", "--expires-at=tomorrow")
    with pytest.raises(CommandError, match="must be a time to come"):
        run("create_key", "Acme", "--scope=read", "--expires-at=2020-01-31T00:00:00Z")


def test_a_label_from_before_cannot_write_on_the_terminal(organization: Organization) -> None:
    keys.mint(organization, Scope.READ, "shop")
    ApiKey.objects.update(label="shop\x1b[2J\rnone")
    shown = run("list_keys", "Acme")
    assert "shop\\x1b[2J\\rnone" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("by", ["id", "prefix", "shown prefix", "label", "secret"])
def test_a_key_is_revoked_by_any_of_its_names(organization: Organization, by: str) -> None:
    new = keys.mint(organization, Scope.READ, "laptop")
    other = keys.mint(organization, Scope.READ, "server").api_key
    prefix = new.api_key.prefix
    named = {
        "id": str(new.api_key.pk),
        "prefix": prefix,
        "shown prefix": f"{prefix}…",
        "label": "laptop",
        "secret": new.secret,
    }[by]

    where = [ACME] if by == "label" else []
    assert run_json("revoke_key", named, *where)["api_key_id"] == str(new.api_key.pk)
    other.refresh_from_db()
    assert keys.status(other) is KeyStatus.ACTIVE


def test_a_label_of_several_keys_names_the_one_that_works(organization: Organization) -> None:
    first = keys.mint(organization, Scope.READ, "laptop").api_key
    second = keys.mint(organization, Scope.READ, "laptop").api_key
    with pytest.raises(CommandError, match=f"{first.prefix}… of Acme"):
        run("revoke_key", "laptop", ACME)
    keys.revoke(first)
    revoked = run_json("revoke_key", "laptop", ACME)
    assert revoked["api_key_id"] == str(second.pk)


def test_a_key_is_looked_for_in_one_organization(organization: Organization) -> None:
    other = Organization.objects.create(name="Zeta")
    here, there = (keys.mint(each, Scope.READ, "ci").api_key for each in (organization, other))
    assert run_json("revoke_key", "ci", "--organization=Zeta")["api_key_id"] == str(there.pk)
    with pytest.raises(CommandError, match="KEY: no key"):
        run("revoke_key", here.prefix, "--organization=Zeta")
    keys.mint(other, Scope.READ, here.prefix)
    assert run_json("revoke_key", here.prefix)["api_key_id"] == str(here.pk), "no label of others"
    with pytest.raises(CommandError, match=r"KEY: 'ci' is a label.*Give --organization too"):
        run("revoke_key", "ci")


def test_a_key_is_rotated_and_its_successor_shown_once(organization: Organization) -> None:
    old = keys.mint(organization, Scope.SPEECH, "kiosk").api_key
    answer = run_json("rotate_key", "kiosk", ACME, "--overlap=0")
    new = ApiKey.objects.get(pk=answer["api_key_id"])
    assert (new.label, new.scope, new.prefix) == ("kiosk", "speech", answer["prefix"])
    assert keys.well_formed(answer["key"]) is Scope.SPEECH
    old.refresh_from_db()
    assert keys.status(old) is KeyStatus.EXPIRED

    answer = run_json("rotate_key", "kiosk", ACME)
    until = datetime.fromisoformat(answer["old_expires_at"])
    assert timedelta(hours=23) < until - datetime.now(UTC) <= timedelta(days=1)
    assert "not shown again" in run("rotate_key", answer["prefix"])
    for wrong in (
        ["kiosk", ACME, "--overlap=-1"],
        ["kiosk", ACME, "--overlap=604801"],
        [old.prefix],
    ):
        with pytest.raises(CommandError):
            run("rotate_key", *wrong)


def test_users_are_listed_disabled_and_enabled(organization: Organization) -> None:
    ann = User.objects.create_user("ann@example.com", "correct horse battery")
    ann.organizations.add(organization)
    User.objects.create_superuser("root@example.com", "correct horse battery")

    first, second = run_json("list_users")
    assert (first["email"], first["organizations"]) == (ann.email, ["Acme"])
    assert (second["email"], second["organizations"]) == ("root@example.com", [])
    assert (first["operator"], second["superuser"]) == (False, True)
    assert [each["email"] for each in run_json("list_users", ACME)] == [ann.email]
    assert run_json("disable_user", "ANN@example.com") == {"user_id": str(ann.pk)}
    assert run_json("list_users")[0]["active"] is False
    run("enable_user", ann.email)
    assert run_json("list_users")[0]["active"] is True
    assert AuditEntry.objects.filter(subject=ann.email, verb="deactivated").count() == 1
    with pytest.raises(CommandError, match="EMAIL"):
        run("disable_user", "nobody@example.com")


def test_an_operator_needs_no_organization(
    organization: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery\n"))
    with pytest.raises(CommandError, match="--organization"):
        run("create_console_user", "ann@example.com", "--password-stdin")
    answer = run_json("create_console_user", "ann@example.com", "--password-stdin", "--operator")
    user = User.objects.get()
    assert answer == {"user_id": str(user.pk)}
    assert user.is_superuser
    assert not user.organizations.exists()


def test_the_words_run_the_commands_under_their_names_in_the_audit_log(
    organization: Organization, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["svc"])
    # The check of the settings belongs to a process of its own.
    monkeypatch.setattr("django.core.management.base.BaseCommand.check", lambda *_, **__: None)
    monkeypatch.setattr("django.core.management.base.connections.close_all", lambda: None)

    assert command_line.run(["/opt/svc/bin/svc", "org", "disable", "Acme", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "disabled"
    (entry,) = AuditEntry.objects.filter(verb="disabled")
    assert (entry.actor, entry.source) == ("command:disable_organization", "command")


def test_every_word_stands_for_a_command() -> None:
    for words in GROUPS.values():
        for command in words.values():
            with pytest.raises(SystemExit) as ended:
                call_command(command, "--help")
            assert ended.value.code == 0
