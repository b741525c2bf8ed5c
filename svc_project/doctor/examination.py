"""The checks of ``svc doctor``, in the order in which their lines are shown.

What Django's system checks find (``svc_project.checks``) is shown as it is, and not looked for again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import Error, connection, transaction

from core.database import schema
from core.database.failures import Kind, failure_of, place, words_of
from svc_project.doctor import servers, stored_secrets
from svc_project.doctor.disk import journal_disk, open_files
from svc_project.doctor.findings import Finding, State

SETTINGS: Final = "settings"
SECRETS: Final = "secrets"
PROXIES: Final = "proxies"
DATABASE: Final = "database"
CLOCK: Final = "clock"
JOURNAL: Final = "journal"

_SUBJECTS: Final = {
    "svc.W001": PROXIES,
    "svc.W002": SECRETS,
    "svc.W003": SECRETS,
    "svc.W004": PROXIES,
    "svc.W005": JOURNAL,
    "svc.W006": DATABASE,
    "svc.W007": DATABASE,
    "svc.W008": CLOCK,
    "svc.W010": PROXIES,
    "svc.W011": DATABASE,
    "svc.W013": PROXIES,
    "svc.W014": PROXIES,
    "svc.E001": PROXIES,
    "svc.E002": DATABASE,
}
"""What a system check is about; those that are not named are about the settings."""
_OF_TLS: Final = frozenset({"security.W004", "security.W008", "security.W012", "security.W016"})
"""Django's words for what svc.W004 says at once."""
_OF_THE_DISK: Final = "svc.E003"
"""What ``journal_disk`` says in more words."""
_FAULTS: Final = frozenset({"svc.W003", "svc.W014"})
"""Warnings at a desk which no gateway should serve with."""


def examine() -> Iterator[Finding]:
    """Look at everything, once; a check that needs the database is left out without one."""
    found = [
        _finding(each)
        for each in checks.run_checks(include_deployment_checks=True)
        if not each.is_silenced()
        and each.id != _OF_THE_DISK
        and (settings.SVC_HTTPS_ONLY or each.id not in _OF_TLS)
    ]
    yield from _about(found, SETTINGS, "every value is one of its setting")
    yield from _about(found, SECRETS, "given, long and random")
    yield from _about(found, PROXIES, "proxies, names of hosts and TLS fit together")
    yield from _about(found, JOURNAL, "")
    yield journal_disk(settings.SVC_DATA_DIR)
    yield open_files(settings.SVC_DATA_DIR)
    yield from servers.redis_store()
    yield from _database(found)


def _database(found: list[Finding]) -> Iterator[Finding]:
    try:
        connection.ensure_connection()
        compared = schema.compare()
    except Error as error:
        yield _unavailable(error)
        return
    tagged = checks.run_checks(
        tags=[checks.Tags.database], include_deployment_checks=True, databases=["default"]
    )
    found = [each for each in found if each.subject == DATABASE]
    found += [_finding(each) for each in tagged]
    found += _transactions()
    yield from _about(found, DATABASE, f"{_product()}: {place()}")
    yield from _schema(compared)
    yield from _about(
        found, CLOCK, "that of the database" if _has_clock() else "the database has none"
    )
    if compared.missing:
        return
    yield from stored_secrets.compare()
    yield from servers.backends()


def _transactions() -> Iterator[Finding]:
    """A pooler can give each statement another connection, and refuse every transaction."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        connection.close()
        yield Finding(
            State.FAULT,
            DATABASE,
            f"no transaction can be begun, so no row can be written: {words_of(error)}",
            "Let the pooler keep a connection for a transaction (PgBouncer: pool_mode = transaction).",
        )


def _unavailable(error: Error) -> Finding:
    found = failure_of(error)
    todo = (
        "Start it, or correct DATABASE_URL; what needs it was not checked."
        if found is None or found.kind is Kind.AWAY
        else ""
    )
    return Finding(State.FAULT, DATABASE, words_of(error), todo)


def _schema(compared: schema.Comparison) -> Iterator[Finding]:
    if compared.missing:
        words = f"older than this release: {len(compared.missing)} migration(s) have not run, the first {compared.missing[0]}."
        yield Finding(State.FAULT, "schema", words, "Run `svc migrate`.")
    elif compared.unknown:
        words = f"newer than this release: it does not know {', '.join(compared.unknown)}."
        todo = "Go on with the upgrade: only one release may be behind the schema."
        yield Finding(State.WARNING, "schema", words, todo)
    else:
        yield Finding(State.OK, "schema", "that of this release")


def _has_clock() -> bool:
    return connection.vendor == "postgresql"


def _product() -> str:
    if connection.vendor != "postgresql":
        return connection.display_name
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return f"PostgreSQL {str(cursor.fetchone()[0]).split()[0]}"


def _about(found: list[Finding], subject: str, words: str) -> list[Finding]:
    """Those of ``found`` about ``subject``; where there is none, that ``words`` are so."""
    about = [each for each in found if each.subject == subject]
    return about or ([Finding(State.OK, subject, words)] if words else [])


def _finding(message: CheckMessage) -> Finding:
    identity = message.id or ""
    is_fault = message.level >= checks.ERROR or identity in _FAULTS
    state = State.FAULT if is_fault else State.WARNING
    return Finding(state, _SUBJECTS.get(identity, SETTINGS), message.msg, message.hint or "")
