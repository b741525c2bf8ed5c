"""The contract's cost recomputation: exact with 14 decimals for all possible rows."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.clock import now
from core.money import COST_DECIMALS, PRICE_DECIMALS, cost_text, parse_price, price_text, token_cost
from tests.support.builders.receipts import receipt
from tests.support.live import Gateway
from usage.ledger import rows
from usage.models import UsageRow

LARGEST_COUNT = 2**31 - 1
prices = st.decimals(0, Decimal(10) ** 10 - 1, places=PRICE_DECIMALS).map(abs)
short_prices = st.integers(0, PRICE_DECIMALS).flatmap(
    lambda places: st.decimals(0, Decimal(10) ** 10 - 1, places=places).map(abs)
)
counts = st.integers(0, LARGEST_COUNT)


@given(price=prices | short_prices, tokens=counts)
def test_a_cost_is_tokens_times_price_exactly(price: Decimal, tokens: int) -> None:
    cost = token_cost(tokens, parse_price(str(price)))

    assert Fraction(cost) == Fraction(tokens) * Fraction(price) / 1_000_000
    assert cost.as_tuple().exponent == -COST_DECIMALS


@given(price=prices | short_prices, tokens=counts)
def test_a_cost_can_be_recomputed_from_the_printed_values(price: Decimal, tokens: int) -> None:
    printed = cost_text(token_cost(tokens, price))

    whole, _, fraction = printed.partition(".")
    assert whole.isdigit()
    assert len(fraction) == COST_DECIMALS
    assert Fraction(printed) == Fraction(tokens) * Fraction(price_text(price)) / 1_000_000


@given(price=prices, several=st.lists(counts, max_size=20))
def test_costs_add_up_whether_tokens_or_costs_are_summed(
    price: Decimal, several: list[int]
) -> None:
    assert sum(Fraction(token_cost(tokens, price)) for tokens in several) == Fraction(
        token_cost(sum(several), price)
    )


PRICES = ["0", "0.00000001", "0.15", "12.34567891", "9999999999.99999999"]


@pytest.mark.django_db
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("tokens", [0, 1, 999_999, LARGEST_COUNT])
def test_a_row_keeps_its_price_to_the_last_decimal(price: str, tokens: int) -> None:
    written = receipt(
        backend_reported_input_tokens=tokens,
        backend_reported_output_tokens=tokens,
        input_price_per_mtok=Decimal(price),
        output_price_per_mtok=Decimal(price),
    )

    rows.insert([written], now())

    row = UsageRow.objects.get(request_id=written.request_id)
    assert row.input_price_per_mtok == row.output_price_per_mtok == Decimal(price)
    assert Fraction(token_cost(row.backend_reported_output_tokens, row.output_price_per_mtok)) == (
        Fraction(tokens) * Fraction(price) / 1_000_000
    )


@pytest.mark.parametrize("model", ["running", "plain", "mini"])
def test_a_live_row_carries_the_catalogs_price(gateway: Gateway, model: str) -> None:
    identifier = gateway.models[model]
    published = gateway.get(f"/models/{identifier}").json()["pricing"]

    row = gateway.row(gateway.chat("say: ok", model).headers["x-request-id"])

    assert price_text(row.input_price_per_mtok) == published["input_per_mtok"]
    assert price_text(row.output_price_per_mtok) == published["output_per_mtok"]
    assert row.price_currency == published["currency"]
    assert row.cost_provisional is published["provisional"]
