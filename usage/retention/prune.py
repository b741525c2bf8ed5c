"""Retention: closed months of usage rows move from the ledger to an archive; their sums stay.

The order makes a crash harmless. The archive is complete, synced, read back and renamed before
anything else happens. The transaction that removes rows stores what they had added to the roll-ups
(``PrunedSum``), so roll-ups are the sum of rows and pruned sums at every instant. A month that is
marked as pruned accepts no rows (triggers of migration ``0007``). After a crash, another run archives
months again that are still complete, and continues to remove months marked as pruned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import F

from svc_project.lib.clock import now
from usage.models import PrunedMonth, PrunedSum, UsageRow, partitions
from usage.models.statements import CHAT, POSTGRESQL_HOUR, SUMMED, Tables
from usage.retention import archives
from usage.retention.archives import Content

FEWEST_MONTHS = 3
"""Whole months that are always kept besides the current one: a query may span 93 days."""

SLICE = 5_000
"""Rows deleted per transaction where a month cannot be dropped as a partition."""

_ATTEMPTS = 10
_LOCK = "2s"
_ROWS = UsageRow._meta.db_table
_PRUNED = Tables(
    receipt=CHAT.receipt,
    rows=UsageRow,
    sums=PrunedSum,
    identity=CHAT.identity,
    key=CHAT.key,
    totals=CHAT.totals,
    summed=CHAT.summed,
)


class PruneFailed(Exception):
    """The month is unchanged; nothing was lost."""


@dataclass(frozen=True, slots=True)
class Month:
    """A UTC month of admissions, as the range of its request ids."""

    first: datetime

    @property
    def bounds(self) -> tuple[str, str]:
        end = partitions.next_month(self.first)
        return partitions.lower_bound(self.first), partitions.lower_bound(end)

    @property
    def file_name(self) -> str:
        return f"usage-{self.first:%Y-%m}.parquet"

    @property
    def partition(self) -> str:
        return f"{partitions.TABLE}_{self.first:%Y_%m}"


def due(keep: int) -> Iterator[Month]:
    """Yield the months with rows before the last ``keep`` whole months, oldest first."""
    last = now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(max(keep, FEWEST_MONTHS)):
        last = last.replace(
            year=last.year - (last.month == 1), month=12 if last.month == 1 else last.month - 1
        )
    begin = "req_0"
    while True:
        oldest = (
            UsageRow.objects.filter(
                request_id__gte=begin, request_id__lt=partitions.lower_bound(last)
            )
            .order_by("request_id")
            .values_list("request_id", flat=True)
            .first()
        )
        if oldest is None:
            return
        moment = datetime.fromtimestamp(int(oldest[4:16], 16) / 1000, UTC)
        month = Month(moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0))
        yield month
        begin = month.bounds[1]


def prune(month: Month, directory: Path, report: Callable[[str], object]) -> int:
    """Archive a month in ``directory`` and remove its rows; return how many were removed now.

    Raises ``PruneFailed``, ``ArchiveUnusable``, ``OSError`` or ``django.db.Error``; another run
    continues.
    """
    path = directory / month.file_name
    pruned = PrunedMonth.objects.filter(first=month.first.date()).first()
    if pruned is None:
        digest = _archive(month, path, report)
        pruned = PrunedMonth(
            first=month.first.date(),
            first_id=month.bounds[0],
            end_id=month.bounds[1],
            rows=0,
            archive=path.name,
            sha256=digest,
            pruned_at=now(),
        )
    elif not path.exists() or archives.sha256(path) != pruned.sha256:
        raise PruneFailed(f"{path} is not the archive that this month was pruned into.")
    at("archived")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _remove(month, pruned, archives.read(path))
        except OperationalError as error:
            # A long read of the ledger locks the partition; waiting for it would block writers.
            if attempt == _ATTEMPTS or getattr(error.__cause__, "sqlstate", "") != "55P03":
                raise
            report(f"{month.first:%Y-%m}: the ledger is being read; retrying")
            time.sleep(1)
    raise AssertionError


def at(point: str) -> None:
    """Mark a point between two steps, at which tests stop."""


def _archive(month: Month, path: Path, report: Callable[[str], object]) -> str:
    """Write the archive and return its SHA-256. An existing archive with more rows is kept."""
    if path.exists() and archives.read(path).rows > _content(month).rows:
        raise PruneFailed(f"{path} has more rows than the ledger has of its month. Move it away.")
    written, digest = archives.write(path, _batches(month))
    report(f"{month.first:%Y-%m}: {written.rows} row(s) archived in {path}")
    return digest


def _batches(month: Month) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows by id, in ranges, so that no statement is open while a batch is written."""
    begin, end = month.bounds
    condition = {"request_id__gte": begin}
    while True:
        rows = list(
            UsageRow.objects.filter(**condition, request_id__lt=end)
            .order_by("request_id")
            .values_list(*archives.COLUMNS)[: archives.BATCH]
        )
        if not rows:
            return
        at("batch read")
        yield rows
        condition = {"request_id__gt": rows[-1][archives.COLUMNS.index("request_id")]}


def _content(month: Month) -> Content:
    """The totals of the month's rows in the ledger now."""
    names = (*SUMMED, "input_price_per_mtok", "output_price_per_mtok")
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), {sums} FROM {_ROWS} WHERE request_id >= %s AND request_id < %s",  # noqa: S608
            month.bounds,
        )
        rows, *found = cursor.fetchone()
    return Content(int(rows), tuple(map(int, found)))


def _remove(month: Month, pruned: PrunedMonth, archived: Content) -> int:
    is_noted = PrunedMonth.objects.filter(pk=pruned.pk).exists()
    if connection.vendor == "postgresql":
        dropped = 0 if is_noted else _drop_partition(month, pruned, archived)
        return dropped + _delete(month)
    if not is_noted:
        # From here on the month accepts no rows, so it can be compared with the archive.
        PrunedMonth.objects.bulk_create([pruned])
        at("noted")
    if pruned.rows == 0 and _content(month) != archived:
        PrunedMonth.objects.filter(pk=pruned.pk).delete()
        raise PruneFailed(f"{month.first:%Y-%m} changed while it was archived. Run prune again.")
    return _delete(month)


def _drop_partition(month: Month, pruned: PrunedMonth, archived: Content) -> int:
    """Mark the month as pruned and drop its partition in one transaction; return its row count."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK}'")
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [month.partition])
        has_partition = cursor.fetchone()[0]
        holder = month.partition if has_partition else partitions.DEFAULT_PARTITION
        cursor.execute(f'LOCK TABLE "{holder}" IN SHARE ROW EXCLUSIVE MODE')
        if _content(month) != archived:
            raise PruneFailed(
                f"{month.first:%Y-%m} changed while it was archived. Run prune again."
            )
        dropped = 0
        if has_partition:
            cursor.execute(f'SELECT count(*) FROM "{month.partition}"')  # noqa: S608
            dropped = cursor.fetchone()[0]
        PrunedMonth.objects.bulk_create([pruned])
        PrunedMonth.objects.filter(pk=pruned.pk).update(rows=dropped)
        if not has_partition:
            return 0
        cursor.execute(_PRUNED.add_to_sums(f'"{month.partition}"'))
        at("summed")
        cursor.execute(f'ALTER TABLE "{_ROWS}" DETACH PARTITION "{month.partition}"')
        cursor.execute(f'DROP TABLE "{month.partition}"')
        at("dropped")
    at("committed")
    return int(dropped)


def _delete(month: Month) -> int:
    """Delete the rows of a month that is marked as pruned, a slice and its sums at a time."""
    begin, end = month.bounds
    hour = (
        POSTGRESQL_HOUR
        if connection.vendor == "postgresql"
        else "substr(occurred_at, 1, 13) || ':00:00'"
    )
    removed = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            ids = list(
                UsageRow.objects.filter(request_id__gte=begin, request_id__lt=end)
                .order_by("request_id")
                .values_list("request_id", flat=True)[:SLICE]
            )
            if not ids:
                return removed
            where = "WHERE request_id >= %s AND request_id <= %s"
            bounds = [ids[0], ids[-1]]
            source = f"(SELECT * FROM {_ROWS} {where}) AS slice"  # noqa: S608  # names are ours
            cursor.execute(_PRUNED.add_to_sums(source, hour), bounds)
            cursor.execute(f"DELETE FROM {_ROWS} {where}", bounds)  # noqa: S608
            PrunedMonth.objects.filter(first=month.first.date()).update(rows=F("rows") + len(ids))
            at("slice")
        removed += len(ids)
        at("slice committed")
