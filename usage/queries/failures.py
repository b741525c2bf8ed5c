"""Failed chats, for operators: how those of an organization fail, and who fails more than before.

The sums have neither codes nor model servers, so what is counted by these comes from the rows, of which each
query reads a bounded number of the newest ones. All else comes from the sums.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.db import connection
from django.db.models import Count, Max

from core.clock import hour_of
from usage.models import UsageRow
from usage.models.partitions import lower_bound
from usage.queries.everyone import failed_of_each
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
    since: datetime


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
    return Failures([Failure(*each) for each in groups[:MOST_GROUPS]], since)


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

    Only those that had failures in the 24 hours are listed. Organizations: requests that ended from the hour
    ``since`` on, and from ``before`` to it, but for ``unknown`` ones, whose outcome is not summed yet. Model
    servers: requests with ids from ``first`` on, and from ``first_before`` to ``end_before`` (exclusive).
    ``capped``: there were more of these than are read, and the newest of each part are counted.
    """

    organizations: list[Rate]
    since: datetime
    before: datetime
    unknown: int
    servers: list[Rate]
    first: str
    first_before: str
    end_before: str
    capped: bool


def compare(now: datetime) -> Comparison:
    """Compare the 24 hours before ``now``, in whole hours. Raises ``django.db.Error``."""
    since = hour_of(now - DAY)
    before = since - WEEK
    ended = failed_of_each(before, since)
    day, week = lower_bound(since), lower_bound(before)
    late, early = _at_servers(day, lower_bound(now + DAY)), _at_servers(week, day)
    counts = [sum(each.requests for each in part) for part in (late, early)]
    return Comparison(
        organizations=_worst(
            Rate(key, each.requests, each.failed, each.requests_before, each.failed_before)
            for key, each in ended.items()
        ),
        since=since,
        before=before,
        unknown=sum(each.unknown for each in ended.values()),
        servers=_worst(_rates(late, early)),
        first=min((each.first for each in late), default=day),
        first_before=min((each.first for each in early), default=week),
        end_before=day,
        capped=max(counts) >= MOST_COMPARED,
    )


class _AtServer(NamedTuple):
    """The requests at a model server, how many failed, and the id of the first one."""

    server: str | None
    requests: int
    failed: int
    first: str


def _at_servers(first: str, end: str) -> list[_AtServer]:
    """How the newest requests with ids from ``first`` to ``end`` (exclusive) ended."""
    unfailed = sorted(outcome.value for outcome in UNFAILED)
    marks = ", ".join(["%s"] * len(unfailed))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT model_server, count(*), "  # noqa: S608  # names are ours
            f"sum(CASE WHEN outcome IN ({marks}) THEN 0 ELSE 1 END), min(request_id) FROM ("
            f'SELECT model_server, outcome, request_id FROM "{UsageRow._meta.db_table}" '
            "WHERE request_id >= %s AND request_id < %s ORDER BY request_id DESC LIMIT %s"
            ") AS newest GROUP BY model_server",
            [*unfailed, first, end, MOST_COMPARED],
        )
        return [_AtServer(*each) for each in cursor.fetchall()]


def _rates(late: Iterable[_AtServer], early: Iterable[_AtServer]) -> Iterable[Rate]:
    found = {
        each.server: Rate(each.server, each.requests, each.failed) for each in late if each.server
    }
    for each in early:
        if each.server in found:
            found[each.server].requests_before = each.requests
            found[each.server].failed_before = each.failed
    return found.values()


def _worst(rates: Iterable[Rate]) -> list[Rate]:
    """Those with failures, worst first."""
    worst = sorted(rates, key=lambda rate: (-rate.excess, -rate.failed, rate.key))
    return [rate for rate in worst if rate.failed]
