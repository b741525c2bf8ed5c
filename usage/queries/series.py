"""Usage by model, or by key, over time, for the console's charts.

The summary has breakdowns by model, by key and by time, not by two at once; this is the only query that
the API does not offer. The bars of a period add up to its summary exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

import msgspec

from core.clock import day_of, hour_of
from core.money import sum_costs
from usage.models import UsageRollup
from usage.models.statements import CACHE_SUMS
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery
from usage.queries.sums import CacheSums, Total, add_up, grouped

Dimension = Literal["model_identifier", "api_key_id"]
_GROUPS: Final[Mapping[Dimension, GroupBy]] = {
    "model_identifier": GroupBy.MODEL,
    "api_key_id": GroupBy.API_KEY,
}


_FIGURES: Final = (
    *("requests", "backend_reported_input_tokens", "backend_reported_output_tokens"),
    *CACHE_SUMS,
)


class Point(msgspec.Struct, frozen=True):
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
    cached_tokens: int = 0
    cache_reported_tokens: int = 0

    @property
    def cache(self) -> CacheSums:
        return CacheSums(self.cached_tokens, self.cache_reported_tokens)


def bucket_start(moment: datetime, bucket: Bucket) -> datetime:
    """The beginning of the UTC hour or day of ``moment``."""
    return day_of(moment) if bucket is Bucket.DAY else hour_of(moment)


def series(
    organization_id: str, query: UsageQuery, by: Dimension = "model_identifier"
) -> list[Point]:
    """Return the points of ``query`` (its bucket, period and filters), by time and ``by``.

    Read from days, hours and rows as the summary is. Raises ``django.db.Error``.
    """
    group = (GroupBy.TIME, _GROUPS[by])
    entries = grouped(organization_id, query, [group], _FIGURES)[group]
    parts: dict[tuple[str, str], list[Total]] = {}
    for (start, name, *_), found in entries.items():
        # A model's identifier may have belonged to several models.
        known = parts.get((start, name))
        parts[start, name] = found if known is None else add_up((*known, *found))
    moments = {start: datetime.fromisoformat(start) for start, _ in parts}
    points = []
    for (start, name), group_parts in sorted(parts.items()):
        for each in group_parts:
            read, written, *cache = each.figures
            point = Point(
                moments[start], name, each.currency, each.requests, read, written, each.cost, *cache
            )
            points.append(point)
    return points


def costs(points: Iterable[Point]) -> dict[str, Decimal]:
    """The exact cost of ``points`` in each currency, by currency."""
    found: defaultdict[str, list[Decimal]] = defaultdict(list)
    for point in points:
        found[point.currency].append(point.cost)
    return {currency: sum_costs(found[currency]) for currency in sorted(found)}


def models_used(organization_id: str, period: Period) -> list[str]:
    """The sorted identifiers of the models that were used in the hours of ``period``."""
    hours = UsageRollup.objects.filter(
        organization_id=organization_id, hour__gte=hour_of(period.start), hour__lt=period.end
    )
    return sorted(hours.values_list("model_identifier", flat=True).distinct())
