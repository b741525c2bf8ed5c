"""Writing rows, their sums and admissions on PostgreSQL (``usage.ledger.rows``).

The database's clock stamps the rows, and the database itself ends a statement that waits too long:
closing the connection would not, because a server process that waits for a lock does not look at its
socket. Statements go to the driver as they are; Django would search them for placeholders every
time. The statement of the rows is prepared once a connection, because planning it takes as long as
writing some ten rows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
import psycopg
from django.db import connection
from psycopg.pq import Escaping, ExecStatus

from core.money import price_units
from usage.ledger.admissions import ADMISSIONS, OWNERS, NewAdmissions
from usage.ledger.journal import records
from usage.ledger.late_rows import replace_earlier
from usage.models.shards import FREE_SHARD
from usage.models.statements import Tables, column_list
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

LOCK_SECONDS: Final = 2.0
"""How long a batch waits for a lock. Its rows are in the journal long before
(``SVC_LEDGER_ANSWER_SECONDS``), and the next retry is a second later, so a worker has at most one
server process that waits for the ledger."""

STATEMENT_SECONDS: Final = 5.0
"""Statement timeout of a batch: less than the 8 seconds after which the writer gives up."""

MARK: Final = "/* svc ledger */"
"""How the writer's statements begin in ``pg_stat_activity``, for people and for older releases."""

PREPARED: Final = "svc_rows_"
"""How the names of the writer's prepared statements begin; the table follows."""

_BEGAN_BITS: Final = 42
_BEGAN_CLASS: Final = 1_213_487
"""The upper bits of the advisory locks of ``_LOCK_BEGAN``, chosen at random. The lower ones are a
time in milliseconds; 42 bits suffice until the year 2109."""

# Evaluated before any row of the transaction is stamped. It conflicts with no other lock.
_LOCK_BEGAN: Final = (
    f"SELECT pg_advisory_xact_lock_shared({_BEGAN_CLASS << _BEGAN_BITS} "  # noqa: S608
    "+ floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)"
)

EARLIEST_BEGAN: Final = (
    f"SELECT to_timestamp(min((key & {(1 << _BEGAN_BITS) - 1}) / 1000.0)) FROM ("  # noqa: S608
    "SELECT (classid::bigint << 32) + objid::bigint AS key FROM pg_locks "
    "WHERE locktype = 'advisory' AND objsubid = 1 AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f") AS began WHERE key >> {_BEGAN_BITS} = {_BEGAN_CLASS}"
)
"""SQL of when the oldest running transaction of a writer began, or null.

Each holds an advisory lock whose number contains that moment until its commit is visible, whatever
statements follow. Every role sees all locks, through a pooler too; ``pg_stat_activity`` hides the
sessions of other roles, shows only the last statement, and may be switched off.
"""


def write(
    batches: Sequence[tuple[Tables, Sequence[AnyReceipt]]],
    occurred_at: datetime | None,
    ended: Sequence[AnyReceipt],
    new: NewAdmissions | None,
) -> tuple[int, bool]:
    """Send everything as one message, which PostgreSQL runs as one transaction.

    Nothing of it stays with a pooled connection: the limits end with the transaction. The
    admissions of ``ended`` are deleted. Admissions are locked before rows, here and by the process
    that closes them (``usage.ledger.orphans``), so that the two cannot deadlock.
    """
    connection.ensure_connection()
    link = connection.connection
    with connection.wrap_database_errors:
        escape = Escaping(link.pgconn).escape_literal
        message = [_LIMITS]
        if _is_asynchronous(link):
            message.append(_DURABLE)
        if new is not None:
            message.append(_admit_statement(new, bytes(escape(_encoded(new)))))
        if ended:
            # A JSON list of strings, without its brackets, is the text of an SQL array.
            ids = msgspec.json.encode([receipt.request_id for receipt in ended])
            message.append(_end_statement(bytes(escape(b"{%b}" % ids[1:-1]))))
        inserts = [
            (
                _insert(tables, occurred_at is not None),
                bytes(
                    escape(msgspec.json.encode([_row(tables, r, occurred_at) for r in receipts]))
                ),
            )
            for tables, receipts in batches
        ]
        answers = _send(link, message, inserts, len(batches) + (new is not None) + bool(ended))
    are_admitted = new is not None and bool(answers.pop(0))
    if ended and answers.pop(0) < len(ended) and (late := replace_earlier(ended)):
        log.warning("ledger: %d rows were replaced by later ones of their requests", late)
    return sum(answers), are_admitted


@dataclass(frozen=True)
class _Insert:
    """The statement that inserts rows and sums from a JSON text, and returns how many are new.

    ``before`` and ``after`` stand around the text, an SQL literal. ``name`` is that of the prepared
    statement: statements of other releases, on a connection that a pooler shares, have other names.
    """

    before: bytes
    after: bytes
    name: bytes

    def whole(self, text: bytes) -> bytes:
        return b"%b%b%b;\n" % (self.before, text, self.after)

    def prepared(self, text: bytes) -> bytes:
        return b"EXECUTE %b(%b);\n" % (self.name, text)

    def preparation(self) -> bytes:
        return b"PREPARE %b(json) AS %b$1%b;\n" % (self.name, self.before, self.after)


def _send(
    link: psycopg.Connection[Any],
    message: list[bytes],
    inserts: list[tuple[_Insert, bytes]],
    expected: int,
) -> list[int]:
    """Run ``message`` and the ``inserts`` of rows behind it, as ``_run`` does."""
    if link.autocommit and _prepare(link, [insert for insert, _ in inserts]):
        rows = [insert.prepared(text) for insert, text in inserts]
        try:
            return _run(link, b"".join(message + rows), expected)
        except psycopg.errors.InvalidSqlStatementName:
            # Nothing was written. A pooler gives each transaction another server connection.
            _names[link] = None
    return _run(
        link, b"".join(message + [insert.whole(text) for insert, text in inserts]), expected
    )


_names: WeakKeyDictionary[psycopg.Connection[Any], set[bytes] | None] = WeakKeyDictionary()
"""The statements that are prepared on each connection; None where none stays prepared."""


def _prepare(link: psycopg.Connection[Any], inserts: list[_Insert]) -> bool:
    """Prepare what is not yet; return whether ``inserts`` are prepared on this connection."""
    names = _names.setdefault(link, set())
    if names is None:
        return False
    for insert in inserts:
        if insert.name not in names:
            result = link.pgconn.exec_(_LIMITS + insert.preparation())
            if result.status != ExecStatus.COMMAND_OK:
                error = psycopg.errors.error_from_result(result)
                # Another worker's, behind a pooler: the name stands for this very statement.
                if not isinstance(error, psycopg.errors.DuplicatePreparedStatement):
                    raise error
            names.add(insert.name)
    return True


def _run(link: psycopg.Connection[Any], message: bytes, expected: int) -> list[int]:
    """Run statements of which the last ``expected`` return a number each; return the numbers."""
    if expected == 1 and link.autocommit:
        # Without the driver's cursor, which takes two fifths of the worker's time for a batch. libpq
        # returns the last result, or the error.
        result = link.pgconn.exec_(message)
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.errors.error_from_result(result)
        return [int(result.get_value(0, 0) or 0)]
    answers = []
    with link.cursor() as cursor:
        cursor.execute(message)
        while cursor.nextset():
            if cursor.description is not None:
                answers += [int(number) for (number,) in cursor.fetchall()]
    return answers


def limit(cursor: Any) -> None:
    """Set the ledger's timeouts on the transaction of ``cursor``, and note that it writes rows."""
    cursor.execute(_LIMITS.decode())


# The lock comes first: ``_run`` expects no rows from the statements after the first.
_LIMITS: Final = (
    f"{MARK} {_LOCK_BEGAN};"
    f" SET LOCAL lock_timeout = {LOCK_SECONDS * 1000:.0f};"
    f" SET LOCAL statement_timeout = {STATEMENT_SECONDS * 1000:.0f};\n"
).encode()
_DURABLE: Final = b"SET LOCAL synchronous_commit = on;\n"
_asynchronous: WeakKeyDictionary[psycopg.Connection[Any], bool] = WeakKeyDictionary()


def _is_asynchronous(link: psycopg.Connection[Any]) -> bool:
    """Whether this role's commits return before they are on disk (``synchronous_commit = off``);
    queried once per connection."""
    known = _asynchronous.get(link)
    if known is None:
        (found,) = link.execute("SHOW synchronous_commit").fetchone() or ("on",)
        known = _asynchronous[link] = found == "off"
    return known


@cache
def _insert(tables: Tables, stamped: bool) -> _Insert:
    """The statement for rows of ``tables``; ``stamped``: their text contains ``occurred_at``."""
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in tables.rows._meta.local_fields
    )
    # An uncorrelated subquery runs once: the whole batch has one time.
    stamp = "(SELECT date_trunc('milliseconds', clock_timestamp()))"
    values = ", ".join(
        stamp if name == "occurred_at" and not stamped else f'"{name}"' for name in tables.columns
    )
    before = (
        f'WITH inserted AS (INSERT INTO "{tables.row_table}" ({column_list(tables.columns)}) '  # noqa: S608
        f"SELECT {values} FROM json_to_recordset("
    )
    after = (
        f"::json) AS receipt({types}) "  # noqa: S608
        f"ON CONFLICT ({column_list(tables.identity)}) DO NOTHING RETURNING *), "
        f"summed AS ({tables.add_to_sums('inserted', shard=FREE_SHARD)}) "
        "SELECT count(*) FROM inserted"
    )
    digest = sha256((before + after).encode()).hexdigest()[:16]
    return _Insert(
        before.encode(), after.encode(), f"{PREPARED}{tables.row_table}_{digest}".encode()
    )


def _row(tables: Tables, receipt: AnyReceipt, occurred_at: datetime | None) -> dict[str, Any]:
    row = msgspec.structs.asdict(receipt)
    for name in tables.price_columns:
        row[name] = price_units(row[name])
    if occurred_at is not None:
        row["occurred_at"] = occurred_at
    return row


def _admit_statement(new: NewAdmissions, literal: bytes) -> bytes:
    """SQL that inserts admissions, unless the lease of their owner may run out soon.

    ``literal``: ``_encoded(new)`` as an SQL literal. Returns 1 when they are inserted, else 0.
    """
    lease = new.lease
    return b"".join(
        (
            f"WITH alive AS (SELECT FROM \"{OWNERS}\" WHERE id = '{lease.owner}' "  # noqa: S608
            f"AND alive_until > clock_timestamp() + interval '{lease.seconds / 2} seconds'), "
            f'noted AS (INSERT INTO "{ADMISSIONS}" (request_id, owner_id, record) '
            f"SELECT request_id, '{lease.owner}', record FROM jsonb_to_recordset(".encode(),
            literal,
            b"::jsonb) AS admission(request_id text, record jsonb) WHERE EXISTS (SELECT FROM alive) "
            b"ON CONFLICT DO NOTHING) SELECT count(*) FROM alive;\n",
        )
    )


def _encoded(new: NewAdmissions) -> bytes:
    """The JSON of admissions that ``_admit_statement`` expects."""
    return msgspec.json.encode(
        [
            {"request_id": each.request_id, "record": msgspec.Raw(records.admission(each))}
            for each in new.receipts
        ]
    )


def _end_statement(literal: bytes) -> bytes:
    """SQL that deletes admissions, except those that another process has closed.

    ``literal``: an array of request ids as an SQL literal. Returns how many were deleted.
    """
    return b"".join(
        (
            f'WITH gone AS (DELETE FROM "{ADMISSIONS}" WHERE closed_at IS NULL AND request_id = ANY ('.encode(),  # noqa: S608
            literal,
            b") RETURNING 1) SELECT count(*) FROM gone;\n",
        )
    )
