"""What a command and the log say of a database that is away, or that has another schema."""

from __future__ import annotations

import pytest
from django.db import (
    DataError,
    Error,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connections,
)

from core.database import failures
from core.database.failures import Kind, failure_of


def caused(kind: type[Error], text: str, state: str | None = None) -> Error:
    """An error of Django's with a psycopg error of that state as its cause."""
    error = kind(text)
    error.__cause__ = type("Cause", (Exception,), {"sqlstate": state})(text)
    return error


REFUSED = (
    'connection failed: connection to server at "10.0.0.1", port 5432 failed: Connection refused\n'
    "\tIs the server running on that host and accepting TCP/IP connections?"
)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (caused(OperationalError, REFUSED), Kind.AWAY, "port 5432 failed: Connection refused"),
        (
            caused(OperationalError, "terminating connection\nLINE 1: secret", "57P01"),
            Kind.AWAY,
            "terminating connection",
        ),
        (InterfaceError("connection already closed"), Kind.AWAY, "connection already closed"),
        (
            caused(ProgrammingError, 'relation "x" does not exist\nLINE 1: secret', "42P01"),
            Kind.OTHER_SCHEMA,
            'relation "x" does not exist. Run `svc migrate`.',
        ),
        (
            OperationalError("no such table: x"),
            Kind.OTHER_SCHEMA,
            "no such table: x. Run `svc migrate`.",
        ),
    ],
)
def test_a_failure_of_the_database_is_one_line(error: Error, kind: Kind, words: str) -> None:
    found = failure_of(error)
    assert found is not None
    assert (found.kind, found.words.endswith(words)) == (kind, True), found.words
    assert "\n" not in found.words
    assert "secret" not in found.words


@pytest.mark.parametrize(
    "error", [DataError("too long"), caused(ProgrammingError, "syntax error", "42601")]
)
def test_a_fault_of_the_program_is_none_of_the_database(error: Error) -> None:
    assert failure_of(error) is None


def test_the_first_of_several_errors_counts() -> None:
    try:
        try:
            raise OperationalError("terminating connection due to administrator command")
        except OperationalError:
            raise InterfaceError("the connection is closed")  # noqa: B904  # as in a rollback
    except InterfaceError as error:
        found = failure_of(error)
    assert found is not None
    assert "administrator command" in found.words


def test_the_place_has_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    described = {"HOST": "db", "PORT": 6543, "NAME": "svc", "USER": "u", "PASSWORD": "geheim"}
    used = connections["default"]
    monkeypatch.setattr(used, "settings_dict", used.settings_dict | described)
    monkeypatch.setattr(used, "vendor", "postgresql")
    assert failures.place() == "database svc at db, port 6543"
