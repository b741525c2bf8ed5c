"""The command line: its words, its help, and the one line and the status of what ends a command early."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, transaction

from accounts import changes
from accounts.models import Organization
from tests.support.live import manage
from tests.support.until import until

PASSWORD = "geheim-passwort"


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    done = manage(*arguments, **environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["org"],
            "`org` needs a word. Its words are: list, create, show, limits, disable, enable.",
        ),
        (["keys", "lst"], "`keys` has no `lst`. Its words are: list, create, rotate, revoke."),
        (
            ["migrat"],
            "there is no command `migrat`. Did you mean `migrate`? `manage.py help` lists all.",
        ),
        (["xyzzy", "--json"], "there is no command `xyzzy`. `manage.py help` lists all."),
    ],
)
def test_a_wrong_name_is_one_line(arguments: list[str], line: str) -> None:
    assert run(*arguments) == (2, "", f"svc: {line}\n")


def test_the_help_begins_with_what_everybody_needs() -> None:
    status, out, _ = run("help")
    named = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    first = ["serve", "reload", "migrate", "doctor", "plan", "apply", "org", "keys", "users"]
    assert (status, named[:9]) == (0, first)
    assert out.index("load_catalog") < out.index("createsuperuser")

    status, out, _ = run("help", "org", "create")
    assert status == 0
    assert out.startswith("usage: manage.py org create ")


DATABASES = {
    "away": (f"postgres://svc:{PASSWORD}@127.0.0.1:1/svc", 3, "127.0.0.1, port 1 is not available"),
    "unmigrated": ("sqlite:///{directory}/new.sqlite3", 4, "Run `svc migrate`."),
}


@pytest.mark.parametrize("state", DATABASES)
def test_a_database_that_cannot_be_used_is_one_line(tmp_path: Path, state: str) -> None:
    address, expected, words = DATABASES[state]
    status, out, errors = run(
        "keys", "list", "acme", DATABASE_URL=address.format(directory=tmp_path)
    )
    assert (status, out, errors.count("\n")) == (expected, "", 1)
    assert words in errors
    assert PASSWORD not in errors


def end_the_waiting() -> bool:
    """End connections to the database of the tests that wait for a lock; whether there was one."""
    with connection.cursor() as cursor:
        # A transaction sees the activity as it was when it first looked.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchall())


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_a_command_that_loses_the_database_ends_with_one_line() -> None:
    used = connection.settings_dict
    address = f"postgres://{used['USER']}@{used['HOST']}:{used['PORT'] or 5432}/{used['NAME']}"
    with ThreadPoolExecutor(1) as thread, transaction.atomic():
        changes.lock(changes.KEYS)
        ended = thread.submit(run, "org", "create", "Acme", DATABASE_URL=address)
        until(end_the_waiting)
        status, _, errors = ended.result()
    assert (status, errors.count("\n")) == (3, 1), errors
    assert "terminating connection due to administrator command" in errors
    assert not Organization.objects.exists()
