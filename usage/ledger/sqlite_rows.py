"""Writing rows, their sums and admissions on SQLite (``usage.ledger.rows``).

The transaction is the only writer, so nothing is locked here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import msgspec
from django.db import IntegrityError, connection, transaction

from core.clock import hour_of, now
from core.money import price_units
from usage.ledger.admissions import OWNERS, NewAdmissions, moment
from usage.ledger.journal import records
from usage.ledger.late_rows import replace_earlier
from usage.models import Admission
from usage.models.health_sums import HEALTH_FACTS, HEALTH_SUMS, columns_of
from usage.models.statements import Adds, Tables, column_list
from usage.receipts import AnyReceipt

LOCK_SECONDS: Final = 2.0
"""How long a batch waits for the write lock; its rows are in the journal long before."""

_MOST_PARAMETERS: Final = 999
"""The parameters that a statement may have in every SQLite that Django supports
(``SQLITE_MAX_VARIABLE_NUMBER`` before 3.32)."""

_MILLISECOND = timedelta(milliseconds=1)


def write(
    batches: Sequence[tuple[Tables, Sequence[AnyReceipt]]],
    occurred_at: datetime | None,
    ended: Sequence[AnyReceipt],
    new: NewAdmissions | None,
) -> tuple[int, bool]:
    """Write everything in one transaction; ``ended`` are receipts whose admission is deleted.

    Return how many rows are new, and whether the admissions ``new`` were written. Raises
    ``django.db.Error``.
    """
    connection.ensure_connection()
    connection.connection.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
    if len(batches) == 1 and not ended and new is None:
        return _insert(*batches[0], occurred_at), False
    with transaction.atomic():
        are_admitted = new is not None and _admit(new)
        _end_admissions(ended)
        rows = sum(_insert(tables, batch, occurred_at) for tables, batch in batches)
    return rows, are_admitted


def _admit(new: NewAdmissions) -> bool:
    """Insert admissions, unless the lease of their owner may run out soon."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT 1 FROM "{OWNERS}" WHERE id = %s '  # noqa: S608
            f"AND alive_until > {moment('%s / 2')}",
            [new.lease.key, new.lease.seconds],
        )
        if cursor.fetchone() is None:
            return False
    Admission.objects.bulk_create(
        [
            Admission(
                request_id=each.request_id,
                owner_id=new.lease.owner,
                record=msgspec.json.decode(records.admission(each)),
            )
            for each in new.receipts
        ],
        ignore_conflicts=True,
    )
    return True


def _end_admissions(ended: Sequence[AnyReceipt]) -> None:
    """Delete the admissions of ``ended``, except those that another process has closed."""
    if ended:
        ids = [receipt.request_id for receipt in ended]
        gone = Admission.objects.filter(request_id__in=ids, closed_at=None).delete()[0]
        if gone < len(ids):
            replace_earlier(ended)


def _insert(tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None) -> int:
    try:
        _insert_missing(tables, receipts, occurred_at)
    except IntegrityError:
        # Existing rows violate the primary key; any other violation must be raised.
        missing = _missing(tables, receipts)
        if len(missing) == len(receipts):
            raise
        if missing:
            _insert_missing(tables, missing, occurred_at)
        return len(missing)
    return len(receipts)


def _insert_missing(
    tables: Tables, receipts: Sequence[AnyReceipt], occurred_at: datetime | None
) -> None:
    """Write receipts that have no row yet.

    Values are bound, several rows in a statement: SQLite parses no text of theirs, and the GIL is
    released once for a block of rows. The sums are added up here, one statement for each key.
    """
    adapt = connection.ops.adapt_datetimefield_value
    rows = [_values(tables, receipt) for receipt in receipts]
    with transaction.atomic(), connection.wrap_database_errors:
        moment = occurred_at or _stamps.take()
        stamp, hour = str(adapt(moment)), str(adapt(hour_of(moment)))
        for row in rows:
            row.append(stamp)
        begin = 0
        for size in _blocks(tables):
            while len(rows) - begin >= size:
                values = list(chain.from_iterable(rows[begin : begin + size]))
                connection.connection.execute(_insert_block(tables, size), values)
                begin += size
        for sums in _sums(tables, rows, hour):
            connection.connection.execute(tables.add_sums_by_value, sums)


class _Stamps:
    """Timestamps of batches, each read while the write lock is held; they never go backwards.

    While the clock has been set back, each is the latest plus a millisecond, so that the export's
    cursors, which have passed the latest, miss no row.
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
    """Return those of ``receipts`` that have no row, each once."""
    by_id = {receipt.request_id: receipt for receipt in receipts}
    rows = tables.rows._default_manager.filter(request_id__in=by_id)
    for request_id in rows.values_list("request_id", flat=True):
        del by_id[request_id]
    return list(by_id.values())


def _values(tables: Tables, receipt: AnyReceipt) -> list[Any]:
    """``receipt_columns`` as Django stores them on SQLite: a UUID as 32 hex digits."""
    values = list(tables.receipt_values(receipt))
    for index in _positions(tables, "uuid_columns"):
        values[index] = values[index].replace("-", "")
    for index in _positions(tables, "price_columns"):
        values[index] = price_units(values[index])
    return values


@cache
def _positions(tables: Tables, names: str) -> list[int]:
    """Where the columns of the list ``names`` of ``tables`` are among ``receipt_columns``."""
    return [tables.receipt_columns.index(name) for name in getattr(tables, names)]


@cache
def _blocks(tables: Tables) -> tuple[int, ...]:
    """How many rows a statement inserts: few sizes, so that all statements stay prepared."""
    return (_MOST_PARAMETERS // len(tables.columns), 8, 1)


@cache
def _insert_block(tables: Tables, size: int) -> str:
    """SQL that inserts ``size`` rows of ``receipt_columns`` and ``occurred_at``."""
    columns = (*tables.receipt_columns, "occurred_at")
    row = f"({', '.join('?' * len(columns))})"
    return (
        f'INSERT INTO "{tables.row_table}" ({column_list(columns)}) '  # noqa: S608
        f"VALUES {', '.join([row] * size)}"
    )


def _sums(tables: Tables, rows: Sequence[list[Any]], hour: str) -> list[list[Any]]:
    """Add up ``rows`` by their key: values of ``sum_columns``."""
    key_of, steps, marks = _key_of(tables), _steps(tables), _marks(tables)
    found: dict[Any, list[int]] = {}
    for row in rows:
        key = key_of(row)
        sums = found.get(key)
        if sums is None:
            sums = found[key] = [0] * len(tables.totals)
        for number, adds, index, known in steps:
            if adds is Adds.ONE:
                sums[number] += 1
            elif (value := row[index]) is None:
                continue
            elif adds is Adds.VALUE:
                sums[number] += value
            elif adds is Adds.ONE_IF_KNOWN:
                sums[number] += 1
            elif adds is Adds.VALUE_IF_KNOWN and row[known] is not None:
                sums[number] += value
        if marks is not None:
            for number in marks(row):
                sums[number] += 1
    at = tables.key.index("hour") if "hour" in tables.key else None
    shard = [0] if tables.sharded else []
    return [
        [*(key if at is None else (*key[:at], hour, *key[at:])), *sums, *shard]
        for key, sums in found.items()
    ]


@cache
def _key_of(tables: Tables) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Reads the key, but for ``hour``, from the values of a row."""
    names = [name for name in tables.key if name != "hour"]
    return itemgetter(*map(tables.receipt_columns.index, names))


@cache
def _steps(tables: Tables) -> list[tuple[int, Adds, int, int]]:
    """What a row adds to each total, by its number, but for those of ``_marks``.

    And where ``column`` and ``known`` are among ``receipt_columns``.
    """
    at = {name: index for index, name in enumerate(tables.receipt_columns)}
    return [
        (number, total.adds, at.get(total.column, 0), at.get(total.known, 0))
        for number, total in enumerate(tables.totals.values())
        if total.adds is not Adds.ONE_IF
    ]


@cache
def _marks(tables: Tables) -> Callable[[list[Any]], list[int]] | None:
    """Finds the totals that a row adds one to, by its outcome and times; None where there are none."""
    numbers = {name: number for number, name in enumerate(tables.totals)}
    if HEALTH_SUMS[0] not in numbers:
        return None
    facts = itemgetter(*map(tables.receipt_columns.index, HEALTH_FACTS))
    return lambda row: [numbers[name] for name in columns_of(*facts(row))]
