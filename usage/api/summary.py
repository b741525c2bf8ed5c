"""The usage summary: an organization's token counts, costs and breakdowns for one query.

Inference contract, "GET /v1/usage" and "Usage summary". docs/api/usage.md explains each field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeVar

from django.conf import settings
from msgspec import UNSET

from accounts.models import ApiKey
from svc_project.lib.clock import iso_milliseconds
from svc_project.lib.money import cost_units_text
from usage.api import throttles
from usage.api.wire import (
    ApiKeyKey,
    BreakdownEntry,
    Breakdowns,
    Cost,
    CostUnits,
    ModelKey,
    SummaryFilters,
    SummaryPeriod,
    TimeKey,
    TokenFigures,
    UsagePricing,
    UsageSummary,
)
from usage.queries import sums
from usage.queries.periods import GroupBy, UsageQuery
from usage.queries.sums import Breakdown, PricedSum

_NO_FIGURES = (0,) * len(TokenFigures.__struct_fields__)
Key = TypeVar("Key")


def summarize(organization_id: str, query: UsageQuery) -> UsageSummary:
    """Return the answer to ``query`` from the organization's ledger, as the API sends it.

    Runs a few statements, however many rows there are. Raises ``django.db.Error``.
    """
    found = sums.breakdowns(organization_id, query)
    # Any breakdown adds up to the total; querying the total as well would be another pass.
    everything = list(chain.from_iterable(found[query.group_by[0]].values()))
    cost = _cost(everything)
    return UsageSummary(
        organization_id=organization_id,
        period=SummaryPeriod(
            start=iso_milliseconds(query.period.start),
            end=iso_milliseconds(query.period.end),
            bucket=query.bucket.value,
        ),
        filters=SummaryFilters(query.filters.model, query.filters.api_key_id),
        requests=sum(part.requests for part in everything),
        tokens=_tokens(everything),
        cost=cost,
        mixed_currency=True if cost is None else UNSET,
        breakdowns=_breakdowns(organization_id, found),
        throttled=throttles.read(organization_id, query.period, query.filters),
        pricing=UsagePricing(provisional=True, billing_enabled=settings.SVC_BILLING_ENABLED),
        cost_units=CostUnits(),
    )


def _breakdowns(organization_id: str, found: dict[GroupBy, Breakdown]) -> Breakdowns:
    """The requested breakdowns, each sorted by its key."""
    models = found.get(GroupBy.MODEL)
    keys = found.get(GroupBy.API_KEY)
    times = found.get(GroupBy.TIME)
    names = _names(organization_id, [api_key_id for (api_key_id,) in keys]) if keys else {}
    return Breakdowns(
        model=UNSET
        if models is None
        else [_entry(ModelKey(*key), parts) for key, parts in sorted(models.items())],
        api_key=UNSET
        if keys is None
        else [
            _entry(ApiKeyKey(api_key_id, *names.get(api_key_id, (None, None))), parts)
            for (api_key_id,), parts in sorted(keys.items())
        ],
        time=UNSET
        if times is None
        else [_entry(TimeKey(*key), parts) for key, parts in sorted(times.items())],
    )


def _names(organization_id: str, api_key_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Label and prefix of those API keys that belong to the organization."""
    keys = ApiKey.objects.filter(organization_id=organization_id, pk__in=api_key_ids)
    return {
        str(pk): (label, prefix) for pk, label, prefix in keys.values_list("pk", "label", "prefix")
    }


def _entry(key: Key, parts: Sequence[PricedSum]) -> BreakdownEntry[Key]:
    cost = _cost(parts)
    return BreakdownEntry(
        key=key,
        requests=sum(part.requests for part in parts),
        tokens=_tokens(parts),
        cost=cost,
        mixed_currency=True if cost is None else UNSET,
    )


def _tokens(parts: Iterable[PricedSum]) -> TokenFigures:
    return TokenFigures(*map(sum, zip(_NO_FIGURES, *(part.figures for part in parts), strict=True)))


def _cost(parts: Sequence[PricedSum]) -> Cost | None:
    """The cost of ``parts``; None when they mix currencies, which cannot be added."""
    currencies = {part.currency for part in parts} or {settings.SVC_DEFAULT_CURRENCY}
    if len(currencies) > 1:
        return None
    # Reported tokens are what is billed; reasoning is included in the output count.
    input_units = sum(part.figures[0] * part.input_price for part in parts)
    output_units = sum(part.figures[1] * part.output_price for part in parts)
    return Cost(
        input=cost_units_text(input_units),
        output=cost_units_text(output_units),
        total=cost_units_text(input_units + output_units),
        currency=currencies.pop(),
    )
