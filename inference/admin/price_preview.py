"""What a new price changes, before it is saved: per million tokens, and for each customer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from core import clock
from core.money import price_text, sum_costs, token_cost
from inference.catalog import pricing
from inference.models import Price
from usage.admin.sums_lines import Names
from usage.queries.everyone import By, sums
from usage.queries.periods import Period

RECKONED: Final = timedelta(days=30)
_MOST_SHOWN: Final = 50
_BY: Final = (By.ORGANIZATION,)


@dataclass(frozen=True, slots=True)
class Rate:
    """One of the two prices, before and after."""

    label: str
    before: Decimal | None
    after: Decimal

    @property
    def texts(self) -> tuple[str, str]:
        return "" if self.before is None else price_text(self.before), price_text(self.after)

    @property
    def change(self) -> str:
        """Such as ``+20.7 %``; empty where there is nothing to compare with."""
        if not self.before or self.before == self.after:
            return ""
        return f"{100 * (self.after - self.before) / self.before:+.1f} %".replace(".0 %", " %")


@dataclass(frozen=True, slots=True)
class Customer:
    """What the tokens of an organization cost in ``RECKONED`` at both prices."""

    name: str
    address: str
    now: Decimal
    then: Decimal

    @property
    def difference(self) -> Decimal:
        return self.then - self.now

    @property
    def sign(self) -> str:
        return "+" if self.difference > 0 else "\N{MINUS SIGN}" if self.difference else ""

    @property
    def size(self) -> Decimal:
        return abs(self.difference)


@dataclass(frozen=True, slots=True)
class Preview:
    """What a price that is not saved yet changes, and for whom."""

    price: Price
    before: Price | None
    """The price that it replaces."""
    after: Price | None
    """The announced one that replaces it."""
    is_now: bool
    customers: list[Customer] | None
    """Those whose costs change most first; None for those who may not see usage."""
    days: int = RECKONED.days

    @property
    def rates(self) -> Iterator[Rate]:
        is_same = self.before is not None and self.before.currency == self.price.currency
        for label, column in (("Input", "input_per_mtok"), ("Output", "output_per_mtok")):
            before = getattr(self.before, column) if is_same else None
            yield Rate(label, before, getattr(self.price, column))

    @property
    def other_currency(self) -> str:
        """The currency that the price replaces; empty where it stays."""
        if self.before is None or self.before.currency == self.price.currency:
            return ""
        return self.before.currency

    @property
    def shown(self) -> list[Customer]:
        return (self.customers or [])[:_MOST_SHOWN]

    @property
    def left_out(self) -> int:
        return len(self.customers or []) - len(self.shown)

    @property
    def whole(self) -> Customer:
        found = self.customers or []
        return Customer(
            "All", "", sum_costs(each.now for each in found), sum_costs(each.then for each in found)
        )


def preview(price: Price, *, is_now: bool, sees_usage: bool) -> Preview:
    """Compare an unsaved ``price`` with the one that it replaces. Raises ``django.db.Error``."""
    before = pricing.price_in_force(price.entry, price.effective_from)
    later = Price.objects.standing().filter(
        entry=price.entry, effective_from__gt=price.effective_from
    )
    return Preview(
        price,
        before,
        later.order_by("effective_from").first(),
        is_now,
        _customers(price, before) if sees_usage and before is not None else None,
    )


def _customers(price: Price, before: Price) -> list[Customer]:
    """From the roll-ups: their tokens at both prices, so that only the price makes the difference."""
    now = clock.now()
    period = Period(clock.hour_of(now - RECKONED), clock.hour_of(now) + timedelta(hours=1))
    entries = sums(period, _BY, model_id=str(price.entry_id))
    tokens: dict[str, tuple[int, int]] = {}
    for each in entries:
        read, written = tokens.get(each.key[0], (0, 0))
        tokens[each.key[0]] = read + each.input_tokens, written + each.output_tokens
    names = Names(_BY, entries)
    found = [
        Customer(
            *names.of(By.ORGANIZATION, organization_id),
            *(
                sum_costs(
                    (
                        token_cost(read, each.input_per_mtok),
                        token_cost(written, each.output_per_mtok),
                    )
                )
                for each in (before, price)
            ),
        )
        for organization_id, (read, written) in tokens.items()
    ]
    return sorted(found, key=lambda each: (-each.size, each.name))
