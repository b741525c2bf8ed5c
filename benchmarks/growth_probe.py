"""Measures one tree for ``benchmarks.growth``: runs in that tree and prints one JSON object.

Uses only functions that every version has: ``summarize``, ``page``, ``csv_blocks``, ``rebuild``, ``verify``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path.cwd()))

import django

django.setup()

from usage.api.export import csv_blocks, page  # noqa: E402
from usage.api.summary import summarize  # noqa: E402
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery  # noqa: E402
from usage.queries.selection import Filters  # noqa: E402
from usage.verification.rebuild import rebuild  # noqa: E402
from usage.verification.rollups import verify  # noqa: E402


def milliseconds(rounds: int, ask: Callable[[], object]) -> float:
    """The median time, after one run to warm up."""
    ask()
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def rows_a_second(walk: Callable[[], int]) -> float:
    began = time.perf_counter()
    return walk() / (time.perf_counter() - began)


def main() -> None:
    organization_id, rare_key, start, end, count, only = sys.argv[1:]
    period = Period(datetime.fromisoformat(start), datetime.fromisoformat(end))
    # About 50 000 rows, in the middle of the period and just before the last day.
    some = max(timedelta(hours=1), (period.end - period.start) * 50_000 / int(count))
    middle = period.start + timedelta(days=40)
    recent = Period(period.end - timedelta(days=1) - some, period.end)

    def export() -> int:
        part = Period(middle, min(middle + 4 * some, period.end))
        blocks = csv_blocks(organization_id, part, Filters())
        return sum(block.count(b"\n") for block in blocks) - 1

    def rows_of(walk: Callable[[], object]) -> int:
        walk()
        answer = summarize(
            organization_id, UsageQuery(recent, Filters(), Bucket.DAY, (GroupBy.MODEL,))
        )
        return answer.requests

    def summary(bucket: Bucket) -> float:
        query = UsageQuery(period, Filters(), bucket, tuple(GroupBy))
        return milliseconds(3, lambda: summarize(organization_id, query))

    def rare_page() -> float:
        filters = Filters(None, rare_key)
        return milliseconds(1, lambda: page(organization_id, period, filters, 10_000, None))

    readings: dict[str, Callable[[], float]] = {
        "summary by day, ms": lambda: summary(Bucket.DAY),
        "summary by hour, ms": lambda: summary(Bucket.HOUR),
        "page of a key with a row in 1000, ms": rare_page,
        "CSV, rows a second": lambda: rows_a_second(export),
        "verify_ledger, rows a second": lambda: rows_a_second(
            lambda: rows_of(lambda: verify(lambda text: None, recent.start))
        ),
        "rebuild_rollups, rows a second": lambda: rows_a_second(
            lambda: rows_of(lambda: rebuild(recent.start))
        ),
    }
    found = {name: read() for name, read in readings.items() if name.startswith(only)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
