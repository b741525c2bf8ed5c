"""The usage summary: an organization's token counts, costs and breakdowns for one query.

Inference contract, "GET /v1/usage" and "Usage summary". docs/api/usage.md explains each field.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

from django.conf import settings
from msgspec import UNSET

from accounts.models import ApiKey
from core.clock import iso_milliseconds
from core.money import cost_units_text
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
from usage.queries.sums import Breakdown, Total

_NO_FIGURES = (0,) * len(TokenFigures.__struct_fields__)
Key = TypeVar("Key")


def summarize(organization_id: str, query: UsageQuery) -> UsageSummary:
    """Return the answer to ``query`` from the organization's ledger, as the API sends it.

    Runs a few statements, however many rows there are. Raises ``django.db.Error``.
    """
    return summary_of(organization_id, query, sums.breakdowns(organization_id, query))


def summary_of(
    organization_id: str, query: UsageQuery, found: dict[GroupBy, Breakdown]
) -> UsageSummary:
    """Return the answer to ``query`` from its sums. Raises ``django.db.Error``."""
    # Any breakdown adds up to the total; querying the total as well would be another pass.
    everything = sums.add_up(chain.from_iterable(found[query.group_by[0]].values()))
    cost = _cost(everything)
    return UsageSummary(
        organization_id=organization_id,
        period=SummaryPeriod(
            start=iso_milliseconds(query.period.start),
            end=iso_milliseconds(query.period.end),
            bucket=query.bucket.value,
        ),
        filters=SummaryFilters(query.filters.model, query.filters.api_key_id),
        requests=sum(each.requests for each in everything),
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


def _entry(key: Key, found: Sequence[Total]) -> BreakdownEntry[Key]:
    cost = _cost(found)
    return BreakdownEntry(
        key=key,
        requests=sum(each.requests for each in found),
        tokens=_tokens(found),
        cost=cost,
        mixed_currency=True if cost is None else UNSET,
    )


def _tokens(found: Sequence[Total]) -> TokenFigures:
    """The contract's token figures, which are the first ones of ``found``."""
    if len(found) == 1:
        return TokenFigures(*found[0].figures[: len(_NO_FIGURES)])
    return TokenFigures(
        *map(sum, zip(_NO_FIGURES, *(each.figures for each in found), strict=False))
    )


def _cost(found: Sequence[Total]) -> Cost | None:
    """The cost of ``found``; None when there are several currencies, which cannot be added."""
    if len(found) > 1:
        return None
    input_units, output_units, currency = (
        (found[0].input_units, found[0].output_units, found[0].currency)
        if found
        else (0, 0, settings.SVC_DEFAULT_CURRENCY)
    )
    return Cost(
        input=cost_units_text(input_units),
        output=cost_units_text(output_units),
        total=cost_units_text(input_units + output_units),
        currency=currency,
    )
