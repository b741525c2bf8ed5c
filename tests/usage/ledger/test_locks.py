"""Writers of the ledger on PostgreSQL: their locks, timeouts and timestamps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from core import clock
from core.ids import NIL_UUID
from tests.support.builders.receipts import receipt
from tests.support.servers.database_outage import rows_locked, tables_locked
from tests.support.until import until
from tests.usage.ledger.conftest import SlowCommit
from usage.api import export
from usage.api.export import complete_page, csv_blocks
from usage.ledger import independent_counts, rows, sqlite_rows
from usage.ledger.completeness import completeness
from usage.models import Reconciliation, UsageRollup, UsageRow, partitions, shards
from usage.queries.periods import Period
from usage.queries.selection import Filters
from usage.receipts import AnyReceipt
from usage.verification.rollups import verify

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]

US = str(NIL_UUID)
ALL = Filters()
DAY = timedelta(days=1)
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event_type = 'Lock' AND query LIKE '%%usage_usagerow%%'"
)


@pytest.fixture
def another() -> Iterator[ThreadPoolExecutor]:
    """A thread with a database connection of its own."""
    with ThreadPoolExecutor(1) as thread:
        yield thread
        thread.submit(connections.close_all).result()


def value(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, [])
        return cursor.fetchone()[0]


def database_now() -> datetime:
    moment: datetime = value("SELECT clock_timestamp()")
    return moment


def this_millisecond() -> datetime:
    """The database's time, truncated like the rows' stamps."""
    moment = database_now()
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def insert_until_taken(receipts: Sequence[AnyReceipt]) -> int:
    """Retry after each failure, as the ledger's writer does."""
    while True:
        try:
            return rows.insert(receipts)
        except OperationalError:
            connection.close()


def test_a_batch_that_waits_for_a_lock_is_ended_by_the_database(
    another: ThreadPoolExecutor,
) -> None:
    with rows_locked():
        waiting = another.submit(rows.insert, [receipt()])
        with pytest.raises(OperationalError):
            waiting.result(60)
        assert value(WAITING) == 0
    assert not UsageRow.objects.exists()


def test_a_period_is_not_closed_while_a_row_of_it_may_be_on_its_way(
    another: ThreadPoolExecutor,
) -> None:
    partitions.ensure(clock.now())
    began = this_millisecond()
    assert began <= completeness().until
    with tables_locked(f"usage_usagerow_{clock.now():%Y_%m}"):
        # The row may have its stamp by now, or get it later.
        waiting = another.submit(insert_until_taken, [receipt()])
        until(lambda: value(WAITING))
        assert not database_now() <= completeness().until
    waiting.result(60)

    end = database_now()
    until(lambda: end <= completeness().until)  # in the next millisecond
    assert UsageRow.objects.filter(occurred_at__gte=began, occurred_at__lt=end).count() == 1


@pytest.mark.parametrize("skew", [-10, 10])
def test_a_walk_misses_no_row_of_a_host_whose_clock_is_wrong(
    monkeypatch: pytest.MonkeyPatch, skew: int
) -> None:
    right = clock.now
    period = Period(right() - DAY, right() + DAY)

    def write(count: int, off: int = 0) -> set[str]:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite_rows, "now", lambda: right() + timedelta(seconds=off))
            made = [receipt() for _ in range(count)]
            for each in made:
                rows.insert([each])
        return {each.request_id for each in made}

    written = write(30)
    first = complete_page(US, period, ALL, 20, None)
    found, after = list(first.rows), first.next_cursor
    assert after is not None
    written |= write(5, skew) | write(10)
    second = complete_page(US, period, ALL, 20, after)
    found += second.rows
    written |= write(5, skew) | write(5)
    assert second.next_cursor is not None
    found += complete_page(US, period, ALL, 100, second.next_cursor).rows

    ids = [row["request_id"] for row in found]
    assert len(ids) == len(set(ids))
    assert set(ids) == written


def test_rows_have_whole_milliseconds_of_the_databases_clock() -> None:
    before = database_now()
    batch = [receipt() for _ in range(50)]
    rows.insert(batch)

    (moment,) = set(UsageRow.objects.values_list("occurred_at", flat=True))
    assert before - timedelta(milliseconds=1) <= moment <= database_now()
    assert moment.microsecond % 1000 == 0


def test_writers_of_the_same_sums_do_not_wait_for_each_other(slow: SlowCommit) -> None:
    slow.begin()
    assert rows.insert([second := receipt()]) == 1
    slow.end()
    assert rows.insert([receipt()]) == 1

    assert sorted(UsageRollup.objects.values_list("shard", "requests")) == [(0, 2), (1, 1)]
    assert independent_counts.fill_in(
        second.request_id, independent_counts.IndependentCount(Reconciliation.MATCHED, 3, 4)
    )
    assert sum(UsageRollup.objects.values_list("svc_counted_output_tokens", flat=True)) == 4
    assert verify(pytest.fail).rollups == 1

    assert shards.merge(clock.now()) == 0
    assert shards.merge(clock.now() + timedelta(hours=1)) == 1
    (merged,) = UsageRollup.objects.all()
    assert (merged.shard, merged.requests, merged.svc_counted_requests) == (0, 3, 1)
    assert verify(pytest.fail).rows == 3


@pytest.mark.parametrize(
    ("database", "used"),
    [("off", "on"), ("local", "local")],
)
def test_a_commit_is_on_disk_when_it_is_answered(database: str, used: str) -> None:
    connection.close()  # the role's setting is queried once per connection
    value(f"SELECT set_config('synchronous_commit', '{database}', false)")
    try:
        with transaction.atomic():
            rows.insert([receipt()])
            assert value("SHOW synchronous_commit") == used
        # No setting stays on the connection for its next user behind a pooler.
        assert value("SHOW synchronous_commit") == database
        assert value("SHOW lock_timeout") == value("SHOW statement_timeout") == "0"
    finally:
        connection.close()


def test_a_slow_download_does_not_block_writers_when_a_month_is_due(
    another: ThreadPoolExecutor,
) -> None:
    rows.insert([receipt() for _ in range(3000)])
    moment = clock.now()
    due = datetime(2031, 1, 15, tzinfo=UTC)
    download = csv_blocks(US, Period(moment - DAY, moment + DAY), ALL)
    next(download)
    try:
        # It would wait for the download, and all other statements would wait for it.
        assert another.submit(partitions.ensure, due).result(60) == []
        assert another.submit(rows.insert, [receipt()]).result(60) == 1
    finally:
        download.close()

    assert partitions.ensure(due) == [f"usage_usagerow_2031_{month:02}" for month in (1, 2, 3, 4)]
    late = receipt(request_id=f"{partitions.lower_bound(due)}{'0' * 20}")
    assert rows.insert([late]) == 1
    assert rows.insert([late]) == 0
    assert value("SELECT count(*) FROM usage_usagerow_2031_01") == 1


def test_rows_are_written_while_a_partition_is_created(another: ThreadPoolExecutor) -> None:
    """A partition whose attachment is not committed yet blocks no writer."""
    due = datetime(2032, 1, 15, tzinfo=UTC)
    with transaction.atomic():
        assert len(partitions.ensure(due)) == 4
        assert another.submit(rows.insert, [receipt()]).result(60) == 1


def test_a_page_that_cannot_become_complete_is_refused(
    slow: SlowCommit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "LONGEST_WAIT_SECONDS", 0.1)
    slow.begin()
    rows.insert([receipt(), receipt()])
    period = Period(clock.now() - DAY, clock.now() + DAY)
    assert len(complete_page(US, period, ALL, 10, None).rows) == 2
    slow.end()
    assert len(complete_page(US, period, ALL, 2, None).rows) == 2
