"""Failed chats, for operators: how those of an organization fail, and who fails more than before.

The roll-ups have no outcomes, so these numbers come from the rows, of which each query reads a bounded
number of the newest ones.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Max, QuerySet
from django.db.models.functions import TruncDate

from usage.models import UsageRow
from usage.models.partitions import lower_bound
from usage.queries.health import UNFAILED
from usage.queries.latest import time_reached

MOST_GROUPS: Final = 100
MOST_COMPARED: Final = 20_000
"""Rows that each half of a comparison reads at most: some tens of milliseconds."""

DAY: Final = timedelta(days=1)
WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed requests that have these four in common; ``last`` is when the latest one ended."""

    error_code: str | None
    model_server: str | None
    model_identifier: str
    api_key_id: uuid.UUID
    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Failures:
    """The failed requests of an organization that ended from ``since`` on.

    ``since`` is later than what was asked for where the organization had more rows than are searched.
    ``groups`` has the ``MOST_GROUPS`` largest ones.
    """

    groups: list[Failure]
    by_day: dict[date, int]
    since: datetime

    @property
    def count(self) -> int:
        return sum(self.by_day.values())


def failures(organization_id: uuid.UUID, since: datetime) -> Failures:
    """Return how the requests of an organization failed. Raises ``django.db.Error``."""
    rows = UsageRow.objects.filter(organization_id=organization_id, occurred_at__gte=since)
    since = time_reached(rows) or since
    failed = rows.filter(occurred_at__gte=since).exclude(outcome__in=UNFAILED).order_by()
    groups = (
        failed.values_list("error_code", "model_server", "model_identifier", "api_key_id")
        .annotate(number=Count("request_id"), latest=Max("occurred_at"))
        .order_by("-number", "-latest")
    )
    return Failures([Failure(*each) for each in groups[:MOST_GROUPS]], _by_day(failed), since)


def _by_day(failed: QuerySet[UsageRow]) -> dict[date, int]:
    days = failed.annotate(day=TruncDate("occurred_at", tzinfo=UTC)).values_list("day")
    return dict(days.annotate(number=Count("request_id")))


@dataclass(slots=True)
class Rate:
    """Requests and failures of a day, beside those of the seven days before it."""

    key: str
    """An organization's id, or a model server's name."""
    requests: int = 0
    failed: int = 0
    requests_before: int = 0
    failed_before: int = 0

    @property
    def share(self) -> float:
        return self.failed / self.requests if self.requests else 0.0

    @property
    def share_before(self) -> float | None:
        """None where there was no request before."""
        return self.failed_before / self.requests_before if self.requests_before else None

    @property
    def excess(self) -> float:
        """Failures beyond what the rate of the days before would have given."""
        return self.failed - self.requests * (self.share_before or 0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How requests failed in the last 24 hours against the seven days before, worst first.

    Only who had failures in the 24 hours. The bounds are request ids: the first of the 24 hours, and of the
    days before. ``capped``: there were more rows than are read, and the newest of each part are counted.
    """

    organizations: list[Rate]
    servers: list[Rate]
    day: str
    week: str
    capped: bool


def compare(now: datetime) -> Comparison:
    """Compare the requests admitted in the 24 hours before ``now``. Raises ``django.db.Error``."""
    day, week = lower_bound(now - DAY), lower_bound(now - DAY - WEEK)
    late = _ended(day, lower_bound(now + DAY))
    before = _ended(week, day)
    return Comparison(
        organizations=_rates((str(owner), *rest) for owner, _, *rest in _marked(late, before)),
        servers=_rates((server, *rest) for _, server, *rest in _marked(late, before) if server),
        day=day,
        week=week,
        capped=any(sum(each[2] for each in part) >= MOST_COMPARED for part in (late, before)),
    )


_Ended = tuple[uuid.UUID, str | None, int, int]
"""An organization, a model server, their requests, and how many of those failed."""


def _ended(first: str, end: str) -> list[_Ended]:
    """How the newest requests with ids from ``first`` to ``end`` (exclusive) ended."""
    unfailed = sorted(outcome.value for outcome in UNFAILED)
    marks = ", ".join(["%s"] * len(unfailed))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT organization_id, model_server, count(*), "  # noqa: S608  # names are ours
            f"sum(CASE WHEN outcome IN ({marks}) THEN 0 ELSE 1 END) FROM ("
            f'SELECT organization_id, model_server, outcome FROM "{UsageRow._meta.db_table}" '
            "WHERE request_id >= %s AND request_id < %s ORDER BY request_id DESC LIMIT %s"
            ") AS newest GROUP BY organization_id, model_server",
            [*unfailed, first, end, MOST_COMPARED],
        )
        return [
            (owner if isinstance(owner, uuid.UUID) else uuid.UUID(owner), server, count, failed)
            for owner, server, count, failed in cursor.fetchall()
        ]


def _marked(late: list[_Ended], before: list[_Ended]) -> list[Any]:
    return [(*each, True) for each in late] + [(*each, False) for each in before]


def _rates(parts: Iterable[tuple[str, int, int, bool]]) -> list[Rate]:
    found: defaultdict[str, Rate] = defaultdict(lambda: Rate(""))
    for key, requests, failed, is_late in parts:
        rate = found[key]
        rate.key = key
        if is_late:
            rate.requests += requests
            rate.failed += failed
        else:
            rate.requests_before += requests
            rate.failed_before += failed
    worst = sorted(found.values(), key=lambda rate: (-rate.excess, -rate.failed, rate.key))
    return [rate for rate in worst if rate.failed]
