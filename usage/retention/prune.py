"""Retention: closed months of usage rows move from the ledger to an archive; their sums stay.

A row belongs to the later of two months: that of its admission, which is in its id, and that in which
it was settled. So a month that is not pruned has all rows that were settled in it, whatever a host's
clock said, and an export of it agrees with its summary.

The order makes a crash harmless. The archive is complete, synced, read back and renamed before
anything else happens. The transaction that removes rows stores what they had added to the roll-ups
(``PrunedSum``), so roll-ups are the sum of rows and pruned sums at every instant. A month that is
marked as pruned accepts no rows (triggers of migration ``0010``, and of its partition), so it is compared
with its archive without a lock. After a crash, another run archives months again that are not marked,
and continues to remove those that are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from psycopg import errors

from core.clock import month_of, next_month, now
from usage.models import PrunedMonth, PrunedSum, UsageRow, partitions
from usage.models.statements import CHAT, POSTGRESQL_HOUR, SUMMED, Tables, column_list
from usage.retention import archives
from usage.retention.archives import Content

SMALLEST_ID: Final = "req_0"


@dataclass(frozen=True, slots=True)
class Month:
    """A UTC month: rows admitted and settled before its end, one of the two in it."""

    first: datetime

    def __str__(self) -> str:
        return f"{self.first:%Y-%m}"

    @property
    def end(self) -> datetime:
        return next_month(self.first)

    @property
    def condition(self) -> tuple[str, list[Any]]:
        """SQL that selects the month's rows, and its parameters."""
        adapt = connection.ops.adapt_datetimefield_value
        begin_id, end_id = self.bounds
        return (
            "request_id >= %s AND request_id < %s AND occurred_at < %s "
            "AND (request_id >= %s OR occurred_at >= %s)",
            [SMALLEST_ID, end_id, adapt(self.end), begin_id, adapt(self.first)],
        )

    def rows(self) -> QuerySet[UsageRow]:
        """The month's rows in the ledger, by id."""
        begin_id, end_id = self.bounds
        settled_or_admitted = Q(request_id__gte=begin_id) | Q(occurred_at__gte=self.first)
        return UsageRow.objects.filter(
            settled_or_admitted,
            request_id__gte=SMALLEST_ID,
            request_id__lt=end_id,
            occurred_at__lt=self.end,
        ).order_by("request_id")

    @property
    def bounds(self) -> tuple[str, str]:
        """The request ids of its admissions, the second one exclusive."""
        return partitions.lower_bound(self.first), partitions.lower_bound(self.end)

    @property
    def file_name(self) -> str:
        return f"usage-{self.first:%Y-%m}.parquet"

    @property
    def partition(self) -> str:
        return f"{partitions.TABLE}_{self.first:%Y_%m}"

    def content(self) -> Content:
        """The totals of the month's rows in the ledger now. Raises ``django.db.Error``."""
        names = (*SUMMED, "input_price_per_mtok", "output_price_per_mtok")
        sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
        condition, parameters = self.condition
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT count(*), {sums} FROM {UsageRow._meta.db_table} WHERE {condition}",  # noqa: S608
                parameters,
            )
            rows, *found = cursor.fetchone()
        return Content(int(rows), tuple(map(int, found)))


FEWEST_MONTHS = 3
"""Whole months that are always kept besides the current one: a query may span 93 days."""

SLICE = 5_000
"""Rows deleted per transaction where a month cannot be dropped as a partition."""

LOCK_SECONDS: Final = 0.2
"""How long removing a partition waits for readers; writers queue behind it, and refuse a request after
``COMMIT_SECONDS`` of waiting where admissions are committed first (``usage.ledger.admissions``)."""

PAUSE_SECONDS = 3.0
_ATTEMPTS = 10
_TRIGGER = "usage_keep_out_pruned"
_ROWS = UsageRow._meta.db_table
_PRUNED = Tables(
    receipt=CHAT.receipt,
    rows=UsageRow,
    sums=PrunedSum,
    identity=CHAT.identity,
    key=CHAT.key,
    totals=CHAT.totals,
)


class PruneFailed(Exception):
    """The month is still in the ledger; nothing was lost."""


def oldest_kept(keep: int, moment: datetime) -> datetime:
    """The beginning of the last ``keep`` whole months at ``moment``."""
    last = month_of(moment)
    for _ in range(max(keep, FEWEST_MONTHS)):
        last = month_of(last - timedelta(days=1))
    return last


def due(keep: int) -> Iterator[Month]:
    """Yield the months with rows before the last ``keep`` whole months, oldest first."""
    last = oldest_kept(keep, now())
    oldest = (
        UsageRow.objects.filter(
            request_id__gte=SMALLEST_ID, request_id__lt=partitions.lower_bound(last)
        )
        .order_by("request_id")
        .values_list("request_id", flat=True)
        .first()
    )
    if oldest is None:
        return
    moment = datetime.fromtimestamp(int(oldest[4:16], 16) / 1000, UTC)
    first = month_of(moment)
    while first < last:
        month = Month(first)
        if month.rows().exists():
            yield month
        first = month.end


def prune(month: Month, directory: Path, report: Callable[[str], object]) -> int:
    """Archive a month in ``directory`` and remove its rows; return how many were removed now.

    Raises ``PruneFailed``, ``ArchiveUnusable``, ``OSError`` or ``django.db.Error``; another run
    continues.
    """
    path = directory / month.file_name
    pruned = PrunedMonth.objects.filter(first=month.first.date()).first()
    if pruned is None:
        digest = _archive(month, path, report)
        at("archived")
        pruned = PrunedMonth.objects.create(
            first=month.first.date(),
            first_id=month.bounds[0],
            end_id=month.bounds[1],
            rows=0,
            archive=path.name,
            sha256=digest,
            pruned_at=now(),
        )
        at("noted")
    elif not path.exists() or archives.sha256(path) != pruned.sha256:
        raise PruneFailed(f"{path} is not the archive that this month was pruned into.")
    # From here on the month accepts no rows, so it can be compared with the archive without a lock.
    if connection.vendor == "postgresql":
        _patiently(month, _shut, report)
    if pruned.rows == 0 and month.content() != archives.read(path):
        pruned.delete()
        raise PruneFailed(f"{month} changed while it was archived. Run prune again.")
    dropped = _patiently(month, _drop_partition, report) if connection.vendor == "postgresql" else 0
    return dropped + _delete(month)


def at(point: str) -> None:
    """Mark a point between two steps, at which tests stop."""


def _archive(month: Month, path: Path, report: Callable[[str], object]) -> str:
    """Write the archive and return its SHA-256. An existing archive with more rows is kept."""
    if path.exists() and archives.read(path).rows > month.content().rows:
        raise PruneFailed(f"{path} has more rows than the ledger has of its month. Move it away.")
    written, digest = archives.write(path, _batches(month))
    report(f"{month}: {written.rows} row(s) archived in {path}")
    return digest


def _batches(month: Month) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows by id, in ranges, so that no statement is open while a batch is written."""
    last = ""
    while True:
        rows = list(
            month.rows()
            .filter(request_id__gt=last)
            .values_list(*archives.COLUMNS)[: archives.BATCH]
        )
        if not rows:
            return
        at("batch read")
        yield rows
        last = rows[-1][archives.COLUMNS.index("request_id")]


def _patiently(month: Month, step: Callable[[Month], int], report: Callable[[str], object]) -> int:
    """Repeat a step whose locks others hold, with pauses in which writers go on. Raises ``PruneFailed``."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return step(month)
        except OperationalError as error:
            if not isinstance(error.__cause__, errors.LockNotAvailable):
                raise
            holder = _holder(month)
        if attempt == 1:
            report(f"{month}: waits for {holder}")
        if attempt < _ATTEMPTS:
            time.sleep(PAUSE_SECONDS)
    raise PruneFailed(
        f"{month} is archived and closed, but its rows cannot be removed while {holder} uses the "
        "ledger (a download, a backup, an autovacuum or a session of psql). Run prune again when that has ended."
    )


def _holder(month: Month) -> str:
    """The server process that has used the ledger for longest, in words."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, to_char(xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') "
            "FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE granted "
            "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND relation IN (to_regclass(%s), to_regclass(%s), to_regclass(%s)) "
            "AND pid <> pg_backend_pid() ORDER BY xact_start NULLS LAST LIMIT 1",
            [_ROWS, partitions.DEFAULT_PARTITION, month.partition],
        )
        process, since = cursor.fetchone() or (None, None)
    if process is None:
        return "another server process"
    return f"server process {process}" + (f" (since {since} UTC)" if since else "")


def _shut(month: Month) -> int:
    """Keep the rows of a month that is marked as pruned unchanged: none comes, none is updated.

    Writers that began before the mark have ended when this returns. Only those of the two partitions wait
    for it, one lock at a time, so that it cannot deadlock with them.
    """
    if _has_partition(month):
        with _briefly_locking() as cursor:
            cursor.execute(
                "SELECT FROM pg_trigger WHERE tgrelid = to_regclass(%s) AND tgname = %s",
                [month.partition, _TRIGGER],
            )
            if cursor.fetchone() is None:
                cursor.execute(
                    f'CREATE TRIGGER {_TRIGGER} BEFORE INSERT OR UPDATE ON "{month.partition}" '
                    f"FOR EACH ROW EXECUTE FUNCTION {_TRIGGER}()"
                )
    with _briefly_locking() as cursor:
        cursor.execute(f'LOCK TABLE "{partitions.DEFAULT_PARTITION}" IN SHARE MODE')
    return 0


def _has_partition(month: Month) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [month.partition])
        return bool(cursor.fetchone()[0])


@contextmanager
def _briefly_locking() -> Iterator[Any]:
    """A transaction that waits for each of its locks no longer than ``LOCK_SECONDS``; its cursor."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_SECONDS * 1000:.0f}")
        yield cursor


def _drop_partition(month: Month) -> int:
    """Keep the sums of the month's partition and drop it, in one transaction.

    Rows of the partition that were settled later stay in the ledger. Return how many rows left it.
    """
    if not _has_partition(month):
        return 0
    with _briefly_locking() as cursor:
        dropped = _sum_partition(cursor, month)
        PrunedMonth.objects.filter(first=month.first.date()).update(rows=F("rows") + dropped)
        _remove_partition(cursor, month)
        at("dropped")
    at("committed")
    return dropped


def _sum_partition(cursor: Any, month: Month) -> int:
    """Keep the sums of the rows that leave with the month's partition; return how many they are."""
    leaving = f'(SELECT * FROM "{month.partition}" WHERE occurred_at < %s) AS leaving'  # noqa: S608
    cursor.execute(f"SELECT count(*) FROM {leaving}", [month.end])  # noqa: S608
    count: int = cursor.fetchone()[0]
    cursor.execute(_PRUNED.add_to_sums(leaving), [month.end])
    at("summed")
    return count


def _remove_partition(cursor: Any, month: Month) -> None:
    """Drop the month's partition, and put back its rows that were settled later.

    No request reads or writes the ledger meanwhile, so these rows are looked up by organization in the index
    instead of by reading the partition.
    """
    partition, columns = f'"{month.partition}"', column_list(archives.COLUMNS)
    first = f"SELECT organization_id FROM {partition} {{}} ORDER BY organization_id LIMIT 1"  # noqa: S608
    cursor.execute(f'ALTER TABLE "{_ROWS}" DETACH PARTITION {partition}')
    cursor.execute(
        f"WITH RECURSIVE organization(id) AS (({first.format('')}) UNION ALL "  # noqa: S608
        f"SELECT ({first.format('WHERE organization_id > organization.id')}) "
        f"FROM organization WHERE id IS NOT NULL) "
        f'INSERT INTO "{_ROWS}" ({columns}) SELECT {columns} FROM organization, LATERAL ('
        f"SELECT * FROM {partition} WHERE organization_id = organization.id AND occurred_at >= %s "
        "OFFSET 0) AS later",
        [month.end],
    )
    cursor.execute(f"DROP TABLE {partition}")


def _delete(month: Month) -> int:
    """Delete the rows of a month that is marked as pruned, a slice and its sums at a time."""
    condition, parameters = month.condition
    hour = (
        POSTGRESQL_HOUR
        if connection.vendor == "postgresql"
        else "substr(occurred_at, 1, 13) || ':00:00'"
    )
    removed = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            ids = list(month.rows().values_list("request_id", flat=True)[:SLICE])
            if not ids:
                return removed
            where = f"WHERE {condition} AND request_id >= %s AND request_id <= %s"
            bounds = [*parameters, ids[0], ids[-1]]
            source = f"(SELECT * FROM {_ROWS} {where}) AS slice"  # noqa: S608  # names are ours
            cursor.execute(_PRUNED.add_to_sums(source, hour), bounds)
            cursor.execute(f"DELETE FROM {_ROWS} {where}", bounds)  # noqa: S608
            PrunedMonth.objects.filter(first=month.first.date()).update(rows=F("rows") + len(ids))
            at("slice")
        removed += len(ids)
        at("slice committed")
