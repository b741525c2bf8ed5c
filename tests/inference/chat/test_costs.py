"""The cost of rows, as ``/metrics`` shows it."""

from __future__ import annotations

from decimal import Decimal

from inference.chat.costs import Costs
from tests.support.builders.receipts import receipt


def test_amounts_stay_exact_over_a_change_of_price() -> None:
    costs = Costs()
    first, second = Decimal("0.10"), Decimal("0.25")
    for price in (first, first, second):
        costs.add(
            receipt(
                input_price_per_mtok=price,
                output_price_per_mtok=first,
                backend_reported_input_tokens=1_000_000,
                backend_reported_output_tokens=2_000_000,
            )
        )
    costs.add(receipt(price_currency="EUR", backend_reported_output_tokens=0))

    found = {each.labels["currency"]: each.value for each in costs.family().samples}
    assert found == {"USD": 0.10 + 0.10 + 0.25 + 6 * 0.10, "EUR": 0}
