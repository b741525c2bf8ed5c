"""Two years of months are pruned one by one, beside live traffic and late journals.

After each month the summary and the export give what a book beside them says of every period that is
answered, and every other one is 400.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts.models import Organization
from core.clock import next_month
from tests.support.builders import traffic
from tests.support.builders.receipts import receipt
from tests.support.ledger.commands import differences, drop_tables, id_of, run
from usage.ledger.journal import adoption, records
from usage.ledger.journal.segments import LIVE, Segment
from usage.models import UsageRow, partitions
from usage.queries import days
from usage.receipts import AnyReceipt
from usage.retention import prune

pytestmark = pytest.mark.django_db(transaction=True)
pytest.importorskip("pyarrow")

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
MONTHS = 24
KEPT = 3
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
PERIOD = "%Y-%m-%dT%H:%M:%SZ"


def months(first: datetime, count: int) -> list[datetime]:
    found = [first]
    while len(found) < count:
        found.append(next_month(found[-1]))
    return found


class Books:
    """Writes rows of one organization, and knows when each was settled."""

    def __init__(self, reader: Client) -> None:
        self.reader = reader
        self.organization = str(Organization.objects.get().pk)
        self.settled: dict[str, datetime] = {}

    def write(self, admitted: datetime, settled: datetime) -> str:
        request_id = id_of(admitted)
        traffic.write(settled, request_id=request_id, organization_id=self.organization)
        self.settled[request_id] = settled
        return request_id

    def month(self, first: datetime) -> None:
        """Rows at both edges of a month, in the middle, and over its end."""
        end = next_month(first)
        for moment in (first, first + 14 * DAY, end - SECOND):
            self.write(moment, moment)
        self.write(end - SECOND, end + 240 * SECOND)

    @contextmanager
    def live_traffic(self, now: datetime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Another thread writes rows at each step of a prune: of now, over the last midnight, and of
        wrong clocks."""
        steps: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        monkeypatch.setattr(prune, "at", steps.put)

        def write() -> None:
            while steps.get() is not None:
                for admitted in (now, now - DAY, FIRST + DAY, next_month(now) + DAY):
                    self.write(admitted, now)
            connection.close()

        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(write)
            try:
                yield
            finally:
                steps.put(None)
                written.result()

    def require(self, start: datetime, end: datetime, *, rows_from: datetime) -> None:
        """Compare both answers for a period; months before ``rows_from`` are pruned."""
        period = {"start": start.strftime(PERIOD), "end": end.strftime(PERIOD)}
        expected = {each for each, moment in self.settled.items() if start <= moment < end}
        summary = self.reader.get("/v1/usage", period)
        cuts_an_hour = start < rows_from and (start.minute or start.second)
        assert summary.status_code == (400 if cuts_an_hour else 200), period
        if not cuts_an_hour:
            assert summary.json()["requests"] == len(expected), period
        else:
            assert refused_for(summary) == ("invalid_query", "start")
        assert self._exported(period) == (expected if start >= rows_from else 400), period

    def _exported(self, period: dict[str, str]) -> set[str] | int:
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self.reader.get("/v1/usage/export", {**period, "cursor": cursor})
            if page.status_code != 200:
                assert refused_for(page) == ("invalid_query", "start")
                return page.status_code
            found += [row["request_id"] for row in page.json()["rows"]]
            cursor = page.json()["next_cursor"]
        assert len(found) == len(set(found))
        return set(found)


def refused_for(answer: Any) -> tuple[str, str]:
    error = answer.json()["error"]
    return error["code"], error["param"]


def replay(journal: Path, left: list[AnyReceipt]) -> int:
    """Adopt the journal of a process that died with the rows ``left``; return how many are new."""
    segment = Segment(journal, LIVE)
    for each in left:
        segment.append(records.encode("settled", each))
    segment.sync()
    segment.abandon()
    return adoption.adopt(journal)


@pytest.fixture
def partitioned() -> Iterator[None]:
    """A partition for each of the months, on PostgreSQL."""
    made = [name for first in months(FIRST, MONTHS) for name in partitions.ensure(first)]
    yield
    UsageRow.objects.all().delete()
    drop_tables(made)


@pytest.mark.long
@pytest.mark.usefixtures("partitioned")
def test_two_years_are_pruned_month_by_month_beside_live_traffic(
    reader: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = Books(reader)
    journal = tmp_path / "journal"
    journal.mkdir()
    for first in months(FIRST, KEPT + 1):
        books.month(first)
    for pruned in months(FIRST, MONTHS):
        rows_from = next_month(pruned)
        newest = months(pruned, KEPT + 2)[-1]
        books.month(newest)
        now = newest + 20 * DAY + 3661 * SECOND
        monkeypatch.setattr("usage.retention.prune.now", lambda now=now: now)
        days.sum_closed_days()
        archived = next(each for each, moment in books.settled.items() if moment == pruned)

        with books.live_traffic(now, monkeypatch):
            said = run("prune", "--keep", str(KEPT), "--archive", str(tmp_path / "archive"))

        assert f"{pruned:%Y-%m}: " in said
        assert not UsageRow.objects.filter(pk=archived).exists()
        ours = {"organization_id": books.organization}
        never_written, late = (
            receipt(request_id=id_of(pruned + DAY), **ours),
            receipt(request_id=id_of(rows_from + DAY), **ours),
        )
        in_archive = receipt(request_id=archived, **ours)
        assert replay(journal, [never_written, in_archive, late]) == 1
        books.settled[late.request_id] = UsageRow.objects.get(pk=late.request_id).occurred_at
        for begin in (pruned, rows_from, newest):
            end = next_month(begin)
            books.require(begin, end, rows_from=rows_from)
            books.require(begin + 3600 * SECOND, end - 3600 * SECOND, rows_from=rows_from)
            books.require(begin + 30 * SECOND, end - 15 * SECOND, rows_from=rows_from)
        books.require(rows_from - 10 * DAY, rows_from + 10 * DAY, rows_from=rows_from)

    kept = b"".join(path.read_bytes() for path in journal.glob("*.refused"))
    assert kept.count(b'"settled"') == 2 * MONTHS
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for begin in (*months(FIRST, MONTHS + KEPT + 2), today):
        books.require(begin, begin + 31 * DAY, rows_from=rows_from)
    assert differences() == []
