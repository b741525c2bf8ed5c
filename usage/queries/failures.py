"""Failed chats, for operators: how those of an organization fail, and who fails more than before.

The roll-ups have no outcomes, so these numbers come from the rows, of which each query reads a bounded
number of the newest ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

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

    Only who had failures in the 24 hours. ``capped``: there were more rows than are read, and the newest of
    each part are counted: those of the 24 hours with request ids from ``first`` on, those of the days before
    from ``first_before`` to ``end_before`` (exclusive).
    """

    organizations: list[Rate]
    servers: list[Rate]
    first: str
    first_before: str
    end_before: str
    capped: bool


def compare(now: datetime) -> Comparison:
    """Compare the requests admitted in the 24 hours before ``now``. Raises ``django.db.Error``."""
    day, week = lower_bound(now - DAY), lower_bound(now - DAY - WEEK)
    late = _ended(day, lower_bound(now + DAY))
    before = _ended(week, day)
    parts = [(each, True) for each in late] + [(each, False) for each in before]
    counts = [sum(each.requests for each in part) for part in (late, before)]
    return Comparison(
        organizations=_rates((str(each.organization_id), each, is_late) for each, is_late in parts),
        servers=_rates((each.server, each, is_late) for each, is_late in parts if each.server),
        first=min((each.first for each in late), default=day),
        first_before=min((each.first for each in before), default=week),
        end_before=day,
        capped=max(counts) >= MOST_COMPARED,
    )


class _Ended(NamedTuple):
    """The requests of an organization at a model server, how many failed, and the id of the first one."""

    organization_id: uuid.UUID
    server: str | None
    requests: int
    failed: int
    first: str


def _ended(first: str, end: str) -> list[_Ended]:
    """How the newest requests with ids from ``first`` to ``end`` (exclusive) ended."""
    unfailed = sorted(outcome.value for outcome in UNFAILED)
    marks = ", ".join(["%s"] * len(unfailed))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT organization_id, model_server, count(*), "  # noqa: S608  # names are ours
            f"sum(CASE WHEN outcome IN ({marks}) THEN 0 ELSE 1 END), min(request_id) FROM ("
            f'SELECT organization_id, model_server, outcome, request_id FROM "{UsageRow._meta.db_table}" '
            "WHERE request_id >= %s AND request_id < %s ORDER BY request_id DESC LIMIT %s"
            ") AS newest GROUP BY organization_id, model_server",
            [*unfailed, first, end, MOST_COMPARED],
        )
        return [
            _Ended(owner if isinstance(owner, uuid.UUID) else uuid.UUID(owner), *rest)
            for owner, *rest in cursor.fetchall()
        ]


def _rates(parts: Iterable[tuple[str, _Ended, bool]]) -> list[Rate]:
    found: dict[str, Rate] = {}
    for key, ended, is_late in parts:
        rate = found.setdefault(key, Rate(key))
        if is_late:
            rate.requests += ended.requests
            rate.failed += ended.failed
        else:
            rate.requests_before += ended.requests
            rate.failed_before += ended.failed
    worst = sorted(found.values(), key=lambda rate: (-rate.excess, -rate.failed, rate.key))
    return [rate for rate in worst if rate.failed]
