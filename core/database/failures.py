"""What is wrong with the database, in one line for an operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from django.db import Error, InterfaceError, OperationalError, connection

_MISSING: Final = frozenset({"42P01", "42703", "3F000"})
"""PostgreSQL's states of a table, a column and a schema that there is not."""
_MISSING_WORDS: Final = re.compile(r"no such (table|column)|has no column named")
"""SQLite has no states."""


class Kind(IntEnum):
    """The value is the exit status of a command that fails so."""

    AWAY = 3
    """It cannot be reached, refuses the connection, or ended it."""
    OTHER_SCHEMA = 4
    """It answers, and lacks what this release needs."""


@dataclass(frozen=True, slots=True)
class Failure:
    kind: Kind
    words: str


def place() -> str:
    """Where the database is, without user and password."""
    described = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"the file {described['NAME']}"
    host, port, name = described["HOST"] or "(socket)", described["PORT"] or 5432, described["NAME"]
    return f"database {name} at {host}, port {port}"


def failure_of(error: Error) -> Failure | None:
    """What ``error`` says of the database; None where the statement is at fault, and so the program.

    The first of the errors that led to it counts: others follow while transactions are rolled back.
    """
    for each in reversed(_chain(error)):
        if _is_missing(each):
            lacks = f"{place()} has not the schema of this release: {_text(each)}"
            return Failure(Kind.OTHER_SCHEMA, f"{lacks}. Run `svc migrate`.")
        if isinstance(each, OperationalError | InterfaceError):
            return Failure(Kind.AWAY, f"{place()} is not available: {_text(each)}")
    return None


def words_of(error: Error) -> str:
    """What ``error`` says, in one line."""
    found = failure_of(error)
    return found.words if found else f"{place()}: {_text(error)}"


def _chain(error: Error) -> list[Error]:
    found, seen = [error], error.__cause__ or error.__context__
    while seen is not None:
        if isinstance(seen, Error):
            found.append(seen)
        seen = seen.__cause__ or seen.__context__
    return found


def _is_missing(error: Error) -> bool:
    state = getattr(error.__cause__, "sqlstate", None)
    return state in _MISSING or bool(_MISSING_WORDS.search(str(error)))


def _text(error: Error) -> str:
    """The database's own words: the first line of a statement's error, all of a connection's.

    A connection's error has no password, but several lines where several addresses were tried. The later
    lines of a statement's quote the statement.
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if getattr(error.__cause__, "sqlstate", None):
        return lines[0]
    # Indented ones are libpq's hints.
    return " ".join(line.strip() for line in lines if not line.startswith("\t"))
