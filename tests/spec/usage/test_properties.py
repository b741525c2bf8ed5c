"""Properties of every summary, for any ledger and period."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from tests.support.builders import traffic
from usage.api.summary import summarize
from usage.api.wire import Cost, TokenFigures, UsageSummary
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery
from usage.queries.selection import Filters

pytestmark = pytest.mark.django_db

BEGIN = datetime(2026, 10, 31, 20, tzinfo=UTC)
MILLISECONDS = 8 * 3_600_000
moments = st.one_of(
    st.integers(0, MILLISECONDS),
    st.integers(0, 8).map(lambda hour: hour * 3_600_000),
    st.integers(1, 8).map(lambda hour: hour * 3_600_000 - 1),
).map(lambda milliseconds: BEGIN + timedelta(milliseconds=milliseconds))
tokens = st.integers(0, 2**31 - 1)
prices = st.sampled_from(["0", "0.15", "0.00000001", "12.34567891", "9999999999.99999999"])
written_rows = st.lists(
    st.tuples(
        moments,
        st.fixed_dictionaries(
            {
                "api_key_id": st.sampled_from([str(uuid.UUID(int=n)) for n in range(3)]),
                "model_identifier": st.sampled_from(["acme/a", "acme/b"]),
                "backend_reported_input_tokens": tokens,
                "backend_reported_output_tokens": tokens,
                "generated_output_tokens": tokens,
                "svc_counted_input_tokens": st.none() | tokens,
                "input_price_per_mtok": prices.map(Decimal),
                "output_price_per_mtok": prices.map(Decimal),
                "price_currency": st.sampled_from(["USD", "USD", "USD", "EUR"]),
            }
        ),
    ),
    max_size=12,
)
periods = (
    st.tuples(moments, moments)
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: Period(min(pair), max(pair)))
)
# The examples share the test's database; each has an organization of its own.
examples = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def write(ledger: Iterable[tuple[datetime, dict[str, Any]]]) -> tuple[str, list[traffic.Written]]:
    """Create an organization with these rows."""
    organization_id = str(uuid.uuid4())
    return organization_id, [
        traffic.write(moment, organization_id=organization_id, **facts) for moment, facts in ledger
    ]


def ask(
    organization_id: str, period: Period, bucket: Bucket, *groups: GroupBy, **filters: str
) -> UsageSummary:
    query = UsageQuery(period, Filters(**filters), bucket, groups or tuple(GroupBy))
    return summarize(organization_id, query)


def added(parts: Iterable[TokenFigures]) -> tuple[int, ...]:
    return tuple(map(sum, zip((0,) * 8, *map(astuple, parts), strict=True)))


def total_of(costs: Iterable[Cost | None]) -> Decimal:
    with localcontext(prec=80):
        return sum((Decimal(cost.total) for cost in costs if cost), Decimal(0))


@examples
@given(ledger=written_rows, period=periods, bucket=st.sampled_from(Bucket))
def test_every_breakdown_adds_up_to_the_total(
    ledger: list[tuple[datetime, dict[str, Any]]], period: Period, bucket: Bucket
) -> None:
    organization_id, written = write(ledger)

    summary = ask(organization_id, period, bucket)

    inside = [each for each in written if period.start <= each.occurred_at < period.end]
    assert summary.requests == len(inside)
    for entries in astuple(summary.breakdowns):
        assert sum(entry.requests for entry in entries) == summary.requests
        assert added(map(attrgetter("tokens"), entries)) == astuple(summary.tokens)
        if summary.cost is not None:
            costs = [entry.cost for entry in entries]
            assert None not in costs
            assert total_of(costs) == Decimal(summary.cost.total)


@examples
@given(ledger=written_rows, period=periods)
def test_the_total_does_not_depend_on_the_breakdown_that_is_asked_for(
    ledger: list[tuple[datetime, dict[str, Any]]], period: Period
) -> None:
    organization_id, written = write(ledger)

    summaries = [ask(organization_id, period, Bucket.DAY, group) for group in GroupBy]

    inside = [each for each in written if period.start <= each.occurred_at < period.end]
    expected = traffic.figures(inside)
    for summary in summaries:
        assert summary.tokens == TokenFigures(**expected["tokens"])
        assert summary.cost == (Cost(**expected["cost"]) if expected["cost"] else None)
