"""What the rows of this process cost, for ``/metrics``.

A request adds two whole numbers; amounts are computed when ``/metrics`` is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from core.monitoring.metrics import Family, Sample
from usage.receipts import Receipt

_PER: Final = 1_000_000


@dataclass(slots=True)
class _Spent:
    """Tokens at one price of one model, and the amount at its earlier prices in that currency."""

    input_price: Decimal
    output_price: Decimal
    input_tokens: int = 0
    output_tokens: int = 0
    before: Decimal = Decimal(0)

    @property
    def amount(self) -> Decimal:
        billed = self.input_tokens * self.input_price + self.output_tokens * self.output_price
        return self.before + billed / _PER

    def reprice(self, input_price: Decimal, output_price: Decimal) -> None:
        self.before = self.amount
        self.input_price, self.output_price = input_price, output_price
        self.input_tokens = self.output_tokens = 0


class Costs:
    """The cost of all settled requests, by model and currency."""

    def __init__(self) -> None:
        self._spent: dict[tuple[str, str], _Spent] = {}

    def add(self, receipt: Receipt) -> None:
        """Add a row."""
        key = receipt.model_identifier, receipt.price_currency
        spent = self._spent.get(key)
        if spent is None:
            spent = self._spent[key] = _Spent(
                receipt.input_price_per_mtok, receipt.output_price_per_mtok
            )
        elif (
            spent.input_price is not receipt.input_price_per_mtok
            or spent.output_price is not receipt.output_price_per_mtok
        ):
            spent.reprice(receipt.input_price_per_mtok, receipt.output_price_per_mtok)
        spent.input_tokens += receipt.backend_reported_input_tokens
        spent.output_tokens += receipt.backend_reported_output_tokens

    def family(self) -> Family:
        samples = [
            Sample("_total", {"model": model, "currency": currency}, float(spent.amount))
            for (model, currency), spent in list(self._spent.items())
        ]
        return Family("svc_cost", "counter", "Cost of the rows, in units of the currency.", samples)
