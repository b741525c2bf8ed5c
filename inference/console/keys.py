"""The console's pages of keys with their use: the list, and one page a key."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.http import HttpRequest, HttpResponse

from accounts.console.keys import KeyLine, KeysView, KeyUse, KeyView
from accounts.keys import keys
from accounts.models import ApiKey, Scope
from core import clock
from core.money import cost_units_text, sum_costs
from inference.console.models import USE_DAYS, last_days
from inference.console.overview import LimitLine, key_limit_lines
from usage.console.charts import Chart, Metric, stacked
from usage.console.query_string import bound_text
from usage.queries.health import sample
from usage.queries.outcomes import whole
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery
from usage.queries.selection import Filters
from usage.queries.series import Point, series
from usage.queries.speech import speech_sums
from usage.queries.sums import Total, breakdowns
from usage.refusals.reading import counted
from usage.templatetags.formats import figure, total_text

_LIMIT_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A key's requests to one model, in one currency."""

    model: str
    currency: str
    requests: int
    tokens: int
    cost: Decimal


class KeysPage(KeysView):
    """The list of keys, with what each cost, or spoke, in the last ``USE_DAYS`` days."""

    def uses(self, api_keys: Sequence[ApiKey]) -> Mapping[uuid.UUID, KeyUse]:
        organization_id = str(self.organization.pk)
        query = last_days(clock.now(), Filters())
        found: dict[str, KeyUse] = {}
        if any(each.scope == Scope.SPEECH for each in api_keys):
            spoken = speech_sums(organization_id, query.period, query.filters).by_key
            found |= {each.name: _spoken(each.characters) for each in spoken}
        if any(each.scope == Scope.INFERENCE for each in api_keys):
            by_key = UsageQuery(query.period, query.filters, Bucket.DAY, (GroupBy.API_KEY,))
            sums = breakdowns(organization_id, by_key)[GroupBy.API_KEY]
            found |= {key_id: _spent(parts) for (key_id,), parts in sums.items()}
        return {uuid.UUID(key_id): use for key_id, use in found.items()}


class KeyPage(KeyView):
    """One key: status, limits beside its busiest minute, and its use of the last ``USE_DAYS`` days."""

    def get(self, request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
        api_key = self.api_key(key_id)
        now = clock.now()
        query = last_days(now, Filters(api_key_id=str(api_key.pk)))
        organization_id = str(self.organization.pk)
        is_chat = api_key.scope == Scope.INFERENCE
        points = series(organization_id, query) if is_chat else []
        return self.page(
            "console/key.html",
            line=KeyLine(api_key, keys.status(api_key)),
            models=_by_model(points),
            chart=_chart(points, query.period),
            health=whole(organization_id, query.period, query.filters) if is_chat else None,
            limits=self._limits(api_key, now) if is_chat else [],
            spoken=speech_sums(organization_id, query.period, query.filters)
            if api_key.scope == Scope.SPEECH
            else None,
            refused=counted(organization_id, query.period, query.filters),
            use_days=USE_DAYS,
            period=f"start={bound_text(query.period.start)}&end={bound_text(query.period.end)}",
        )

    def _limits(self, api_key: ApiKey, now: datetime) -> list[LimitLine]:
        if api_key.requests_per_minute is None and api_key.tokens_per_minute is None:
            return []
        day = Period(now - timedelta(hours=_LIMIT_HOURS), now)
        newest = sample(str(self.organization.pk), day, Filters(api_key_id=str(api_key.pk)))
        return key_limit_lines(api_key, "This key", newest)


def _spoken(characters: int) -> KeyUse:
    text = f"{figure(characters)} characters"
    return KeyUse(text, text)


def _spent(found: Sequence[Total]) -> KeyUse:
    costs = [(cost_units_text(each.units), each.currency) for each in found]
    return KeyUse(
        ", ".join(f"{total_text(Decimal(cost))} {currency}" for cost, currency in costs),
        ", ".join(f"{cost} {currency}" for cost, currency in costs),
    )


def _by_model(points: Sequence[Point]) -> list[ModelUse]:
    """The sums of ``points`` by model and currency, dearest first."""
    groups: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.name, point.currency].append(point)
    found = [
        ModelUse(
            model,
            currency,
            sum(each.requests for each in parts),
            sum(each.input_tokens + each.output_tokens for each in parts),
            sum_costs(each.cost for each in parts),
        )
        for (model, currency), parts in groups.items()
    ]
    return sorted(found, key=lambda each: (-each.cost, each.model))


def _chart(points: Sequence[Point], period: Period) -> Chart | None:
    """Cost by day; requests where costs are in several currencies, or nothing cost anything."""
    if not points:
        return None
    is_cost = len({each.currency for each in points}) == 1 and any(each.cost for each in points)
    metric = Metric.COST if is_cost else Metric.REQUESTS
    unit = points[0].currency if is_cost else metric.value
    return stacked(points, period, Bucket.DAY, metric, unit)
