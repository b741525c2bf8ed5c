"""Usage by model, or by key, over time, for the console's charts.

The summary has breakdowns by model, by key and by time, not by two at once; this is the only query that
the API does not offer. The bars of a period add up to its summary exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any, Literal

from django.db.models import Count, F, Sum
from django.db.models.functions import TruncDay

from svc_project.lib.clock import hour_of
from svc_project.lib.money import sum_costs, token_cost
from usage.models import UsageDay, UsageRollup, UsageRow
from usage.queries import days
from usage.queries.periods import Bucket, Period, UsageQuery
from usage.queries.selection import columns
from usage.queries.snapshot import database_snapshot
from usage.queries.sums import cut

_STAMP = (
    "price_currency",
    "input_price_per_mtok",
    "output_price_per_mtok",
)
Dimension = Literal["model_identifier", "api_key_id"]
_TOKENS = {
    "input_tokens": Sum("backend_reported_input_tokens"),
    "output_tokens": Sum("backend_reported_output_tokens"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One model, or key, in one bucket, in one currency. Tokens as the backend reported them.

    ``name`` is the model's identifier or the key's id.
    """

    bucket_start: datetime
    name: str
    currency: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost: Decimal


@dataclass(slots=True)
class _Sums:
    """Sums of a point before its prices are applied."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)

    def add(self, group: Mapping[str, Any]) -> None:
        self.requests += group["number"]
        self.input_tokens += group["input_tokens"]
        self.output_tokens += group["output_tokens"]
        self.cost = sum_costs(
            (
                self.cost,
                token_cost(group["input_tokens"], group["input_price_per_mtok"]),
                token_cost(group["output_tokens"], group["output_price_per_mtok"]),
            )
        )


def bucket_start(moment: datetime, bucket: Bucket) -> datetime:
    """The beginning of the UTC hour or day of ``moment``."""
    hour = hour_of(moment)
    return hour.replace(hour=0) if bucket is Bucket.DAY else hour


def series(
    organization_id: str, query: UsageQuery, by: Dimension = "model_identifier"
) -> list[Point]:
    """Return the points of ``query`` (its bucket, period and filters), by time and ``by``.

    Read from days, hours and rows as the summary is. Raises ``django.db.Error``.
    """
    sums: defaultdict[tuple[datetime, str, str], _Sums] = defaultdict(_Sums)
    with database_snapshot():
        for start, group in _groups(organization_id, query, by):
            sums[start, str(group[by]), group["price_currency"]].add(group)
    return [
        Point(*key, each.requests, each.input_tokens, each.output_tokens, each.cost)
        for key, each in sorted(sums.items(), key=itemgetter(0))
    ]


def models_used(organization_id: str, period: Period) -> list[str]:
    """The sorted identifiers of the models that were used in the hours of ``period``."""
    hours = UsageRollup.objects.filter(
        organization_id=organization_id, hour__gte=hour_of(period.start), hour__lt=period.end
    )
    return sorted(hours.values_list("model_identifier", flat=True).distinct())


def _groups(
    organization_id: str, query: UsageQuery, by: Dimension
) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Yield sums by bucket and stamped price, each with its bucket."""
    by_day = query.bucket is Bucket.DAY
    chosen = columns(organization_id, query.filters)
    parts = cut(query.period, days.summed_until(organization_id) if by_day else date.min)
    if parts.days is not None:
        closed = UsageDay.objects.filter(
            **chosen, day__gte=parts.days.start.date(), day__lt=parts.days.end.date()
        )
        for group in closed.values(by, *_STAMP, start=F("day")).annotate(
            number=Sum("requests"), **_TOKENS
        ):
            yield days.midnight(group["start"]), group
    for whole in parts.hours:
        hours = UsageRollup.objects.filter(**chosen, **whole.lookups("hour"))
        start = TruncDay("hour", tzinfo=UTC) if by_day else F("hour")
        groups = hours.values(by, *_STAMP, start=start)
        for group in groups.annotate(number=Sum("requests"), **_TOKENS):
            yield group["start"].astimezone(UTC), group
    for edge in parts.edges:
        rows = UsageRow.objects.filter(**chosen, **edge.lookups("occurred_at")).order_by()
        for group in rows.values(by, *_STAMP).annotate(number=Count("*"), **_TOKENS):
            yield bucket_start(edge.start, query.bucket), group
