"""The SQL that puts receipts into the ledger: rows and their sums of a whole batch, together.

A receipt whose ``request_id`` is already there changes nothing, so writing a batch again after an
unclear commit is harmless. Sums are added to in the same transaction, only by rows that are new,
and in the order of their keys, so that two writers cannot wait for each other in a circle.

On PostgreSQL the database's clock gives the rows their time, and the database itself ends a
statement that waits: a closed connection would not, because a server process that waits for a
lock does not look at its socket. Statements go to the driver as they are; Django would search them
for placeholders every time.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
import psycopg
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from psycopg.pq import Escaping

from svc_project.lib.clock import hour_of, now
from svc_project.lib.money import price_units
from usage import admissions
from usage.admissions import Notes
from usage.models import PrunedMonth
from usage.receipts import AnyReceipt
from usage.shards import FREE_SHARD
from usage.tables import KINDS, Tables, listed

log = logging.getLogger(__name__)

LOCK_SECONDS: Final = 2.0
"""How long a batch waits for a lock, on both databases. The journal vouches for its rows long
before (``SVC_LEDGER_ANSWER_SECONDS``), and the next try is a second later, so a worker has one
server process that waits for the ledger and no more."""

STATEMENT_SECONDS: Final = 5.0
"""How long PostgreSQL works on a batch: less than the 8 seconds after which the writer gives up."""

MARK: Final = "/* svc ledger */"
"""What the writer's statements begin with in ``pg_stat_activity`` (``usage.settled``)."""

_MILLISECOND = timedelta(milliseconds=1)


def insert(
    receipts: Sequence[AnyReceipt],
    occurred_at: datetime | None = None,
    *,
    keep_notes: bool = False,
) -> int:
    """Write ``receipts`` in one transaction, durable when this returns; returns how many are new.

    The notes of their admissions go with it (``usage.admissions``), unless ``keep_notes``.

    ``occurred_at`` is the moment of writing by default, in whole milliseconds. On PostgreSQL it is
    the database's, taken in the statement itself, whatever the clock of this host says; on SQLite
    it is taken when the write lock is held, and is never before that of an earlier batch.

    Raises ``django.db.Error``: ``IntegrityError`` or ``DataError`` when a receipt breaks a
    constraint (then none is written), anything else when the database did not do its part.
    """
    batches = _by_kind(receipts)
    if not batches:
        return 0
    if connection.vendor == "postgresql":
        forgets = settings.SVC_DURABLE_ADMISSIONS and not keep_notes
        return _insert_postgresql(batches, occurred_at, receipts if forgets else ())[0]
    if len(batches) == 1:
        return _insert_sqlite(*batches[0], occurred_at)
    with transaction.atomic():
        return sum(_insert_sqlite(tables, batch, occurred_at) for tables, batch in batches)


def insert_and_note(receipts: Sequence[AnyReceipt], notes: Notes) -> tuple[int, bool]:
    """Write ``receipts`` and note admissions in one transaction on PostgreSQL.

    Returns how many rows are new, and whether the admissions are noted: they are not when the lease
    of their owner may run out soon. Raises as ``insert`` does.
    """
    return _insert_postgresql(_by_kind(receipts), None, receipts, notes)


def _by_kind(receipts: Sequence[AnyReceipt]) -> list[tuple[Tables, list[AnyReceipt]]]:
    return [
        (tables, batch)
        for tables in KINDS
        if (batch := [each for each in receipts if type(each) is tables.receipt])
    ]


def _insert_sqlite(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> int:
    try:
        _write_sqlite(tables, receipts, occurred_at)
    except IntegrityError:
        # Rows that are there already break the primary key; anything else must be told.
        missing = _missing(tables, receipts)
        if len(missing) == len(receipts):
            raise
        if missing:
            _write_sqlite(tables, missing, occurred_at)
        return len(missing)
    return len(receipts)


def _write_sqlite(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> None:
    """Write receipts that are not there yet.

    One JSON parameter and one statement for each table: the interpreter's lock is given up twice
    for a batch, not for every row, and the event loop runs while SQLite works.
    """
    adapt = connection.ops.adapt_datetimefield_value
    batch = _sqlite_batch(tables, receipts)
    connection.ensure_connection()
    connection.connection.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
    with transaction.atomic(), connection.wrap_database_errors:
        moment = occurred_at or _stamps.take()
        parameters = {"moment": adapt(moment), "hour": adapt(hour_of(moment)), "batch": batch}
        for statement in _sqlite_statements(tables):
            connection.connection.execute(statement, parameters)


class _Stamps:
    """Times of batches, each taken while the write lock is held: none is before an earlier one.

    While the clock has been set back they go on from the latest by a millisecond each, so that
    the export's cursors, which have passed the latest, miss no row.
    """

    def __init__(self) -> None:
        self._latest: datetime | None = None

    def take(self) -> datetime:
        moment = now()
        if self._latest is not None and moment < self._latest:
            moment = self._latest + _MILLISECOND
        self._latest = moment
        return moment


_stamps = _Stamps()


def _missing(tables: Tables, receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
    """Those of ``receipts`` that have no row and may have one, each once."""
    by_id = {receipt.request_id: receipt for receipt in receipts}
    rows = tables.rows._default_manager.filter(request_id__in=by_id)
    for request_id in rows.values_list("request_id", flat=True):
        del by_id[request_id]
    # A month that is in an archive takes no row (migration 0007); PostgreSQL leaves it out by itself.
    for first_id, end_id in PrunedMonth.objects.values_list("first_id", "end_id"):
        for request_id in [each for each in by_id if first_id <= each < end_id]:
            del by_id[request_id]
    return list(by_id.values())


def _sqlite_batch(tables: Tables, receipts: Sequence[AnyReceipt]) -> str:
    """Lists of ``receipt_columns`` as Django keeps them on SQLite: a UUID as 32 hex digits."""
    uuids = [tables.receipt_columns.index(name) for name in tables.uuid_columns]
    prices = [tables.receipt_columns.index(name) for name in tables.price_columns]
    rows = []
    for receipt in receipts:
        values = list(tables.receipt_values(receipt))
        for index in uuids:
            values[index] = values[index].replace("-", "")
        for index in prices:
            values[index] = price_units(values[index])
        rows.append(values)
    return msgspec.json.encode(rows).decode()


@cache
def _sqlite_statements(tables: Tables) -> tuple[str, str]:
    """Rows, then their sums, from one JSON parameter."""

    def column(name: str) -> str:
        if name == "occurred_at":
            return ":moment"
        return f"json_extract(value, '$[{tables.receipt_columns.index(name)}]')"

    read = [*(name for name in tables.key if name != "hour"), *tables.summed]
    receipts = (
        "(SELECT "  # noqa: S608  # names are ours
        + ", ".join(f'{column(name)} AS "{name}"' for name in read)
        + " FROM json_each(:batch)) AS receipt"
    )
    rows = (
        f'INSERT INTO "{tables.row_table}" ({listed(tables.columns)}) '  # noqa: S608
        f"SELECT {', '.join(map(column, tables.columns))} FROM json_each(:batch)"
    )
    return rows, tables.added_up(receipts, hour=":hour")


def _insert_postgresql(
    batches: Sequence[tuple[Tables, Sequence[AnyReceipt]]],
    occurred_at: datetime | None,
    noted: Sequence[AnyReceipt],
    notes: Notes | None = None,
) -> tuple[int, bool]:
    """One message with everything, which PostgreSQL runs as one transaction of its own.

    A pooler between keeps nothing of it: the limits end with the transaction. ``noted`` are
    requests of which the notes go. Notes are reached before rows, here and by who closes them
    (``usage.orphans``), so that nobody waits in a circle.
    """
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.cursor() as cursor:
        escape = Escaping(connection.connection.pgconn).escape_literal
        message = [_LIMITS]
        if settings.SVC_LEDGER_SYNCHRONOUS_COMMIT and _forgets(connection.connection):
            message.append(_DURABLE)
        if notes is not None:
            literal = bytes(escape(admissions.noted(notes)))
            message.append(admissions.note_statement(notes, literal))
        if noted:
            # A list of texts in JSON is, but for its brackets, an array's text in SQL.
            ids = msgspec.json.encode([receipt.request_id for receipt in noted])
            message.append(admissions.forget_statement(bytes(escape(b"{%b}" % ids[1:-1]))))
        for tables, receipts in batches:
            before, after = _postgresql_statement(tables, occurred_at is not None)
            rows = [_postgresql_row(tables, receipt, occurred_at) for receipt in receipts]
            message += (before, bytes(escape(msgspec.json.encode(rows))), after)
        cursor.execute(b"".join(message))
        answers = []
        # The limits answer with no row, each of the others with one.
        while cursor.nextset():
            if cursor.description is not None:
                answers.append(cursor.fetchone()[0])
    are_noted = notes is not None and bool(answers.pop(0))
    if noted and answers.pop(0) < len(noted) and (late := admissions.amend(noted)):
        log.warning(
            "ledger: %d rows that were written for a process taken for dead are replaced", late
        )
    return sum(answers), are_noted


def limit(cursor: Any) -> None:
    """Put the limits of the ledger's statements on the transaction that ``cursor`` is in."""
    cursor.execute(_LIMITS.decode())


_LIMITS: Final = (
    f"{MARK} SET LOCAL lock_timeout = {LOCK_SECONDS * 1000:.0f};"
    f" SET LOCAL statement_timeout = {STATEMENT_SECONDS * 1000:.0f};\n"
).encode()
_DURABLE: Final = b"SET LOCAL synchronous_commit = on;\n"
_forgetful: WeakKeyDictionary[psycopg.Connection[Any], bool] = WeakKeyDictionary()


def _forgets(link: psycopg.Connection[Any]) -> bool:
    """Whether the database answers this role's commits before they are on disk; asked once for a
    connection. One that waits for more than its own disk does not."""
    known = _forgetful.get(link)
    if known is None:
        (found,) = link.execute("SHOW synchronous_commit").fetchone() or ("on",)
        known = _forgetful[link] = found == "off"
    return known


@cache
def _postgresql_statement(tables: Tables, stamped: bool) -> tuple[bytes, bytes]:
    """Rows and their sums, from a JSON text between the two parts; answers how many are new.

    ``stamped``: ``occurred_at`` is in the text.
    """
    types = ", ".join(
        f'"{field.attname}" {field.db_type(connection)}' for field in tables.rows._meta.local_fields
    )
    # A query that depends on nothing is run once: the whole batch has one time.
    stamp = "(SELECT date_trunc('milliseconds', clock_timestamp()))"
    values = ", ".join(
        stamp if name == "occurred_at" and not stamped else f'"{name}"' for name in tables.columns
    )
    before = (
        f'WITH inserted AS (INSERT INTO "{tables.row_table}" ({listed(tables.columns)}) '  # noqa: S608
        f"SELECT {values} FROM jsonb_to_recordset("
    )
    after = (
        f"::jsonb) AS receipt({types}) "  # noqa: S608
        f"ON CONFLICT ({listed(tables.identity)}) DO NOTHING RETURNING *), "
        f"summed AS ({tables.added_up('inserted', shard=FREE_SHARD)}) "
        "SELECT count(*) FROM inserted;\n"
    )
    return before.encode(), after.encode()


def _postgresql_row(
    tables: Tables, receipt: AnyReceipt, occurred_at: datetime | None
) -> dict[str, Any]:
    row = msgspec.structs.asdict(receipt)
    for name in tables.price_columns:
        row[name] = price_units(row[name])
    if occurred_at is not None:
        row["occurred_at"] = occurred_at
    return row
