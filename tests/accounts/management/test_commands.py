"""The account commands: their JSON, running them again, and invalid arguments."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management.base import CommandError

from accounts.keys import keys
from accounts.models import ApiKey, Membership, Organization, Scope, User
from tests.support.ledger.commands import run, run_json

pytestmark = pytest.mark.django_db

NO_SUCH_ID = "11111111-2222-4333-8444-555555555555"
PASSWORD = "correct horse battery"


@pytest.fixture
def console_user(monkeypatch: pytest.MonkeyPatch) -> Any:
    def create(*arguments: str, password: str = PASSWORD) -> Any:
        monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))
        return run_json("create_console_user", *arguments)

    return create


def test_create_organization_prints_its_id_and_sets_what_is_given() -> None:
    answer = run_json(
        "create_organization",
        "Acme",
        "--plan=enterprise",
        "--priority=interactive",
        "--requests-per-minute=10",
        "--tokens-per-minute=unlimited",
        "--speech-requests-per-minute=20",
        "--speech-characters-per-day=30",
    )
    organization = Organization.objects.get()
    assert answer == {"organization_id": str(organization.pk)}
    assert (organization.plan, organization.priority) == ("enterprise", "interactive")
    assert organization.requests_per_minute == 10
    assert organization.tokens_per_minute is None
    assert organization.speech_requests_per_minute == 20
    assert organization.speech_characters_per_day == 30


def test_create_organization_again_changes_only_what_is_given() -> None:
    first = run_json("create_organization", "Acme", "--requests-per-minute=10")
    again = run_json("create_organization", "Acme", "--tokens-per-minute=99")
    assert first == again
    organization = Organization.objects.get()
    assert (organization.requests_per_minute, organization.tokens_per_minute) == (10, 99)
    assert "Updated organization Acme" in run("create_organization", "Acme")


@pytest.mark.parametrize("scope", list(Scope))
def test_create_key_prints_the_secret_once(organization: Organization, scope: Scope) -> None:
    answer = run_json(
        "create_key", "Acme", f"--scope={scope}", "--label=laptop", "--priority=batch"
    )
    api_key = ApiKey.objects.get()
    assert list(answer) == ["api_key_id", "key", "prefix"]
    assert answer["api_key_id"] == str(api_key.pk)
    assert answer["prefix"] == api_key.prefix
    assert keys.well_formed(answer["key"]) is scope
    assert (api_key.scope, api_key.label, api_key.priority) == (scope, "laptop", "batch")


def test_without_json_the_commands_print_plain_text(organization: Organization) -> None:
    text = run("create_key", "Acme", "--scope=read")
    api_key = ApiKey.objects.get()
    assert "not shown again" in text
    assert api_key.prefix in text
    assert "is revoked since" in run("revoke_key", str(api_key.pk))


ORGANIZATIONS = {
    "NAME": ([""], ["x" * 121]),
    "--plan": (["Acme", "--plan=gold"],),
    "--priority": (["Acme", "--priority=urgent"],),
    "--requests-per-minute": tuple(
        ["Acme", f"--requests-per-minute={value}"] for value in ("0", "-1", "1" + "0" * 20)
    ),
    "--tokens-per-minute": (["Acme", "--tokens-per-minute=many"],),
    "--speech-requests-per-minute": (["Acme", "--speech-requests-per-minute=1.5"],),
    "--speech-characters-per-day": (["Acme", "--speech-characters-per-day=²"],),
}
KEYS = {
    "ORGANIZATION": (["Nobody", "--scope=read"], [NO_SUCH_ID, "--scope=read"]),
    "--scope": (["Acme", "--scope=admin"], ["Acme"]),
    "--label": (["Acme", "--scope=read", "--label=" + "x" * 81],),
}
REVOKED = {"KEY": ([""], ["svc_live_abc"], [NO_SUCH_ID])}


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        (command, arguments, named)
        for command, refused in (
            ("create_organization", ORGANIZATIONS),
            ("create_key", KEYS),
            ("revoke_key", REVOKED),
        )
        for named, wrong in refused.items()
        for arguments in wrong
    ],
)
def test_a_command_names_the_argument_it_refuses(
    command: str, arguments: list[str], named: str
) -> None:
    if command != "create_organization":
        Organization.objects.create(name="Acme")
    before = Organization.objects.count()
    with pytest.raises(CommandError, match=named):
        run(command, *arguments)
    assert (Organization.objects.count(), ApiKey.objects.count()) == (before, 0)


def test_create_console_user_makes_a_member_who_can_log_in(
    organization: Organization, console_user: Any
) -> None:
    answer = console_user("Ann@Example.com", "--organization=Acme", "--password-stdin")
    user = User.objects.get()
    assert answer == {"user_id": str(user.pk), "organization_id": str(organization.pk)}
    assert user.email == "ann@example.com"
    assert user.check_password(PASSWORD)
    assert not user.is_staff
    assert not user.is_superuser
    assert list(user.organizations.all()) == [organization]


def test_create_console_user_again_updates_and_takes_nothing_away(
    organization: Organization, console_user: Any
) -> None:
    Organization.objects.create(name="Second")
    console_user("ann@example.com", "--organization=Acme", "--password-stdin", "--operator")
    before = User.objects.get().password
    console_user("ANN@example.com", "--organization=Acme", "--password-stdin")
    assert User.objects.get().password == before, "the same password ends no session"
    console_user("ann@example.com", "--organization=Second")
    console_user(
        "ann@example.com", "--organization=Second", "--password-stdin", password="other phrase 9"
    )
    user = User.objects.get()
    assert user.check_password("other phrase 9")
    assert user.is_staff
    assert user.is_superuser
    assert Membership.objects.count() == 2


def test_create_console_user_again_needs_no_organization(
    organization: Organization, console_user: Any
) -> None:
    console_user("ann@example.com", "--organization=Acme", "--password-stdin")
    console_user("ann@example.com", "--password-stdin", password="other phrase 9")
    user = User.objects.get()
    assert user.check_password("other phrase 9")
    assert list(user.organizations.all()) == [organization]
    with pytest.raises(CommandError, match="there is this user already"):
        console_user("ann@example.com")
    with pytest.raises(CommandError, match="--owner: say of which organization"):
        console_user("ann@example.com", "--owner")
    assert Membership.objects.get().role == "member"


@pytest.mark.parametrize(
    ("arguments", "password", "named"),
    [
        (["ann", "--organization=Acme", "--password-stdin"], PASSWORD, "EMAIL"),
        (["a@b.co", "--organization=Nobody", "--password-stdin"], PASSWORD, "--organization"),
        (["a@b.co", "--organization=Acme"], PASSWORD, "--password-stdin"),
        (["a@b.co", "--organization=Acme", "--password-stdin"], "", "--password-stdin"),
        (["a@b.co", "--organization=Acme", "--password-stdin"], "short", "--password-stdin"),
    ],
)
def test_create_console_user_names_the_argument_it_refuses(
    organization: Organization, console_user: Any, arguments: list[str], password: str, named: str
) -> None:
    with pytest.raises(CommandError, match=named):
        console_user(*arguments, password=password)
    assert not User.objects.exists()


def test_create_console_user_does_not_revive_a_deactivated_user(
    organization: Organization, console_user: Any
) -> None:
    User.objects.create_user("ann@example.com", PASSWORD, is_active=False)
    with pytest.raises(CommandError, match="EMAIL"):
        console_user("ann@example.com", "--organization=Acme", "--password-stdin")
