"""``svc plan`` and ``svc apply``: one file, a second plan that is empty, errors that change nothing."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry, Membership, Organization, User
from inference.models import Backend, ModelEntry
from speech.models import Voice
from tests.support.cases.catalog_files import BACKEND, MODEL
from tests.support.live import manage

ACCOUNTS = """
[[organizations]]
name = "acme"
plan = "enterprise"
priority = "interactive"
requests_per_minute = 600
tokens_per_minute = "unlimited"
diagnostic_captures = false

[[organizations]]
name = "blue"

[[users]]
email = "Ada@acme.example"
organizations = ["acme", "blue"]
"""
VOICE = '[[voices]]\nid = "ava"\nengine_voice = "en-us+f3"\n'
FILE = ACCOUNTS + BACKEND + MODEL + VOICE
CREATED = [
    *("created organization acme", "created organization blue"),
    "created user ada@acme.example, who has no password yet",
    *("user ada@acme.example: joins acme", "user ada@acme.example: joins blue"),
    *("created backend gpu-1", "created weights acme/demo-8b@2026-11-01"),
    "created model acme/demo-8b",
    "created deployment acme/demo-8b@2026-11-01 on gpu-1 as demo-8b-awq",
    *("price of acme/demo-8b", "published acme/demo-8b", "created voice ava"),
]
NOTHING = ["nothing to change"]
NO_SUCH_ID = "11111111-2222-4333-8444-555555555555"
Apply = Callable[[str], list[str]]
Plan = Callable[[str], tuple[int, list[str]]]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    def apply(content: str) -> list[str]:
        return _lines(tmp_path, "apply", content, io.StringIO())

    return apply


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Returns the exit status and the lines."""

    def plan(content: str) -> tuple[int, list[str]]:
        out = io.StringIO()
        try:
            return 0, _lines(tmp_path, "plan", content, out)
        except SystemExit as ended:
            return int(str(ended.code)), _without_times(out)

    return plan


def _lines(directory: Path, command: str, content: str, out: io.StringIO) -> list[str]:
    path = directory / "svc.toml"
    path.write_text(content, encoding="utf-8")
    call_command(command, path, stdout=out)
    return _without_times(out)


def _without_times(out: io.StringIO) -> list[str]:
    return [line.partition(" from 2")[0] for line in out.getvalue().splitlines()]


@pytest.mark.django_db
def test_a_plan_says_what_apply_then_does_and_a_second_plan_is_empty(
    apply: Apply, plan: Plan
) -> None:
    assert plan(FILE) == (2, CREATED)
    assert not Organization.objects.exists()
    assert not User.objects.exists()
    assert not Backend.objects.exists()
    assert not AuditEntry.objects.exists()

    assert apply(FILE) == CREATED
    acme = Organization.objects.get(name="acme")
    assert (acme.plan, acme.requests_per_minute, acme.tokens_per_minute) == (
        "enterprise",
        600,
        None,
    )
    assert (acme.captures_allowed, acme.priority) == (False, "interactive")
    user = User.objects.get()
    assert (user.email, user.has_usable_password(), user.is_staff) == (
        "ada@acme.example",
        False,
        False,
    )
    assert Membership.objects.count() == 2
    assert ModelEntry.objects.get().published_at is not None

    written = AuditEntry.objects.count()
    assert plan(FILE) == (0, NOTHING)
    assert apply(FILE) == NOTHING
    assert AuditEntry.objects.count() == written


@pytest.mark.django_db
def test_each_change_is_one_line_with_before_and_after(apply: Apply, plan: Plan) -> None:
    apply(FILE)
    changed = (
        FILE.replace("600", '"unlimited"')
        .replace('"enterprise"', '"standard"')
        .replace('"interactive"', '"batch"')
        .replace("diagnostic_captures = false", "diagnostic_captures = true")
        .replace('name = "blue"', 'name = "blue"\ndisabled = true')
        .replace('["acme", "blue"]', '["blue"]\nactive = false')
        .replace("256", "128")
        .replace("en-us+f3", "en-us+f2")
    )
    lines = [
        "organization acme: plan enterprise -> standard",
        "organization acme: priority interactive -> batch",
        "organization acme: requests_per_minute 600 -> unlimited",
        "organization acme: diagnostic_captures False -> True",
        "disabled organization blue",
        "disabled user ada@acme.example",
        "user ada@acme.example: leaves acme",
        "backend gpu-1: max_concurrency 256 -> 128",
        "voice ava: engine_voice en-us+f3 -> en-us+f2",
    ]
    assert plan(changed) == (2, lines)
    assert apply(changed) == lines
    assert plan(changed) == (0, NOTHING)
    assert User.objects.get().is_active is False
    back = changed.replace("disabled = true", "disabled = false").replace("active = false", "")
    assert apply(back) == ["enabled organization blue"]


@pytest.mark.django_db
def test_what_the_file_leaves_out_stays(apply: Apply, plan: Plan) -> None:
    apply(FILE)
    assert plan('[[organizations]]\nname = "acme"\n[[users]]\nemail = "ada@acme.example"\n') == (
        0,
        NOTHING,
    )
    assert plan("") == (0, NOTHING)
    assert plan(BACKEND + MODEL + VOICE) == (0, NOTHING)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("600", "0", "organizations[0].requests_per_minute: Expected int >= 1"),
        (
            "600",
            '"many"',
            "organizations[0].requests_per_minute: Invalid enum value 'many', only a number or \"unlimited\".",
        ),
        ("600", "1" + "0" * 16, "organizations[0].requests_per_minute: Expected int <= 1"),
        ('"enterprise"', '"gold"', "organizations[0].plan: "),
        ('"interactive"', '"urgent"', "organizations[0].priority: "),
        ("plan =", "plans =", "organizations[0].plans: There is no such key here."),
        ('"blue"\n', '"acme"\n', "organizations[1].name: acme is there twice."),
        ('name = "acme"', f'name = "{"x" * 121}"', "organizations[0].name: Ensure this value has"),
        ('name = "acme"', 'name = "a\\u0000"', "organizations[0].name: It holds a null character."),
        (
            'name = "acme"',
            'name = "a\\nb"',
            "organizations[0].name: Leave out control and invisible characters",
        ),
        ('name = "acme"', f'name = "{NO_SUCH_ID}"', "organizations[0].name: It reads as an id."),
        ('"acme", "blue"', '"acme", "red"', "users[0].organizations[1]: There is no organization"),
        ('"acme", "blue"', '"acme", "acme"', "users[0].organizations[1]: acme is there twice."),
        ("Ada@acme.example", "ada", "users[0].email: Enter a valid email address."),
        ("[[users]]", '[[users]]\npassword = "geheim"', "users[0].password: There is no such key"),
        ("[[users]]", "[[users]]\noperator = true", "users[0].operator: There is no such key"),
        ('"en-us+f3"', '"none"', "voices[0].engine_voice: "),
        ('"0.15"', '"-1"', "models[0].pricing.input_per_mtok: "),
    ],
)
def test_a_mistake_names_its_place_and_changes_nothing(
    apply: Apply, plan: Plan, old: str, new: str, said: str
) -> None:
    assert old in FILE
    for command in (plan, apply):
        with pytest.raises(CommandError) as refused:
            command(FILE.replace(old, new))
        assert str(refused.value).startswith(f"svc.toml: {said}"), refused.value
    assert not Organization.objects.exists()
    assert not User.objects.exists()
    assert not Backend.objects.exists()
    assert not Voice.objects.exists()


@pytest.mark.django_db
def test_load_catalog_takes_the_catalog_alone(tmp_path: Path) -> None:
    path = tmp_path / "svc.toml"
    path.write_text(FILE, encoding="utf-8")
    with pytest.raises(CommandError, match="organizations: There is no such key"):
        call_command("load_catalog", path)


def test_the_status_of_the_program_tells_changes_from_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "svc.toml"
    path.write_text('[[organizations]]\nname = "acme"\n', encoding="utf-8")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        done = manage(*arguments, DATABASE_URL=f"sqlite:///{tmp_path}/svc.sqlite3")
        return done.returncode, done.stdout, done.stderr

    assert run("migrate", "--verbosity=0")[0] == 0
    assert run("plan", path) == (2, "created organization acme\n", "")
    assert run("apply", path) == (0, "created organization acme\n", "")
    assert run("plan", path) == (0, "nothing to change\n", "")
    path.write_text("organizations = 1\n", encoding="utf-8")
    status, out, errors = run("plan", path)
    assert (status, out) == (1, "")
    assert errors.endswith("svc.toml: organizations: Expected array, got int.\n")
    status, out, errors = run("apply", tmp_path / "none.toml")
    assert (status, out) == (1, "")
    assert "cannot be read: No such file or directory." in errors
