"""Usage by model over time: what the console's chart stacks.

The summary has breakdowns by model and by time, not by both at once; this is the one reading that
the API does not have. The bars of a period add up to its summary exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncDay

from svc_project.lib.clock import hour_of
from svc_project.lib.money import sum_costs, token_cost
from usage import days
from usage.models import UsageDay, UsageRollup, UsageRow
from usage.one_state import one_state
from usage.periods import Bucket, Filters, Period, UsageQuery
from usage.sums import cut

_STAMP = (
    "model_identifier",
    "price_currency",
    "input_price_per_mtok",
    "output_price_per_mtok",
)
_TOKENS = {
    "input_tokens": Sum("backend_reported_input_tokens"),
    "output_tokens": Sum("backend_reported_output_tokens"),
}


@dataclass(frozen=True, slots=True)
class Point:
    """One model in one bucket, in one currency. Tokens as the backend reported them."""

    bucket_start: datetime
    model_identifier: str
    currency: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost: Decimal


@dataclass(slots=True)
class _Sums:
    """A point while its prices are added up."""

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
    """The beginning of the UTC hour or day that ``moment`` is in."""
    hour = hour_of(moment)
    return hour.replace(hour=0) if bucket is Bucket.DAY else hour


def series(organization_id: str, query: UsageQuery) -> list[Point]:
    """The points of ``query`` (its bucket, period and filters), by time and model.

    Read from days, hours and rows as the summary is. Raises ``django.db.Error``.
    """
    sums: defaultdict[tuple[datetime, str, str], _Sums] = defaultdict(_Sums)
    with one_state():
        for start, group in _groups(organization_id, query):
            sums[start, group["model_identifier"], group["price_currency"]].add(group)
    return [
        Point(*key, each.requests, each.input_tokens, each.output_tokens, each.cost)
        for key, each in sorted(sums.items(), key=itemgetter(0))
    ]


def models_used(organization_id: str, period: Period) -> list[str]:
    """The identifiers of the models that were used in the hours of ``period``, sorted."""
    hours = UsageRollup.objects.filter(
        organization_id=organization_id, hour__gte=hour_of(period.start), hour__lt=period.end
    )
    return sorted(hours.values_list("model_identifier", flat=True).distinct())


def _groups(organization_id: str, query: UsageQuery) -> Iterator[tuple[datetime, dict[str, Any]]]:
    """Sums by bucket and stamped price, with the bucket that each belongs to."""
    by_day = query.bucket is Bucket.DAY
    parts = cut(query.period, days.summed_until(organization_id) if by_day else date.min)
    if parts.days is not None:
        closed = UsageDay.objects.filter(
            day__gte=parts.days.start.date(), day__lt=parts.days.end.date()
        )
        for group in (
            _own(closed, organization_id, query.filters)
            .values(*_STAMP, start=F("day"))
            .annotate(number=Sum("requests"), **_TOKENS)
        ):
            yield days.midnight(group["start"]), group
    for whole in parts.hours:
        hours = UsageRollup.objects.filter(hour__gte=whole.start, hour__lt=whole.end)
        start = TruncDay("hour", tzinfo=UTC) if by_day else F("hour")
        for group in (
            _own(hours, organization_id, query.filters)
            .values(*_STAMP, start=start)
            .annotate(number=Sum("requests"), **_TOKENS)
        ):
            yield group["start"].astimezone(UTC), group
    for edge in parts.edges:
        rows = UsageRow.objects.filter(occurred_at__gte=edge.start, occurred_at__lt=edge.end)
        for group in (
            _own(rows, organization_id, query.filters)
            .order_by()
            .values(*_STAMP)
            .annotate(number=Count("*"), **_TOKENS)
        ):
            yield bucket_start(edge.start, query.bucket), group


def _own(rows: QuerySet[Any], organization_id: str, filters: Filters) -> QuerySet[Any]:
    rows = rows.filter(organization_id=organization_id)
    if filters.model is not None:
        rows = rows.filter(model_identifier=filters.model)
    if filters.api_key_id is not None:
        rows = rows.filter(api_key_id=filters.api_key_id)
    return rows
