"""Prices and costs as exact decimals.

A price has at most 8 decimals, so tokens x price / 10^6 is exact with 14 (8 + 6); no cost is ever
rounded. Floats never carry money.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import lru_cache
from typing import Final

PRICE_DECIMALS = 8
PRICE_DIGITS = 18
COST_DECIMALS = 14
_COST_QUANTUM = Decimal(1).scaleb(-COST_DECIMALS)
_MILLION = Decimal(1_000_000)
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
_NUMBER: Final = re.compile(r"[+-]?[0-9.]{1,40}([eE][+-]?[0-9]{1,3})?")
"""Without ``_``, which ``Decimal`` skips: ``0_15``, a mistyped 0.15, is 15 to it. 40 digits are exact."""


def parse_price(text: str) -> Decimal:
    """Parse a price per million tokens.

    Raises ``ValueError`` with a message for people when it is not a plain non-negative decimal
    with at most 8 decimals and 10 digits before the point.
    """
    try:
        price = Decimal(text) if _NUMBER.fullmatch(text.strip()) else None
    except InvalidOperation:
        price = None
    if price is None:
        raise ValueError(f"{text[:40]!r} is not a decimal number such as 0.15.")
    if price.is_signed():
        raise ValueError("A price must be zero or more.")
    exponent = price.normalize(_EXACT).as_tuple().exponent
    if isinstance(exponent, int) and -exponent > PRICE_DECIMALS:
        raise ValueError(f"A price has at most {PRICE_DECIMALS} decimals, so that costs are exact.")
    if price >= Decimal(10) ** (PRICE_DIGITS - PRICE_DECIMALS):
        raise ValueError("A price has at most 10 digits before the point.")
    return price


@lru_cache(maxsize=4096)
def price_units(price: Decimal) -> int:
    """``price`` in whole units of 10^-8, as the database keeps it (``core.fields.PriceField``)."""
    return int(price.scaleb(PRICE_DECIMALS))


@lru_cache(maxsize=4096)
def price_of_units(units: int) -> Decimal:
    """The inverse of ``price_units``."""
    return Decimal(units).scaleb(-PRICE_DECIMALS)


def price_text(price: Decimal) -> str:
    """``0.15``, ``2.00``, ``0.00000125``: no exponent, no zeros beyond the second decimal."""
    whole, _, fraction = f"{price:.{PRICE_DECIMALS}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def token_cost(tokens: int, price_per_mtok: Decimal) -> Decimal:
    """The cost of ``tokens`` at a price per million tokens, exact, with 14 decimals.

    Inference contract, "Cost recomputation". Raises ``decimal.Inexact`` rather than round, which
    cannot happen for a price that ``parse_price`` accepted.
    """
    return (_EXACT.divide(_EXACT.multiply(Decimal(tokens), price_per_mtok), _MILLION)).quantize(
        _COST_QUANTUM, context=_EXACT
    )


def sum_costs(costs: Iterable[Decimal]) -> Decimal:
    """The exact sum of ``costs``; zero with 14 decimals when there are none.

    Plain ``sum`` would round at the 28 digits of Python's default context.
    """
    total = _COST_QUANTUM * 0
    for cost in costs:
        total = _EXACT.add(total, cost)
    return total


def cost_text(cost: Decimal) -> str:
    """A cost as the contract prints it: a plain decimal with 14 decimal places."""
    return f"{cost:.{COST_DECIMALS}f}"


def cost_of_units(units: int) -> Decimal:
    """A cost in units of 10^-14 as an exact decimal with 14 decimals."""
    return _EXACT.scaleb(units, -COST_DECIMALS)


def cost_units_text(units: int) -> str:
    """A cost in units of 10^-14, which is tokens times ``price_units``, as ``cost_text`` prints it."""
    whole, fraction = divmod(units, 10**COST_DECIMALS)
    return f"{whole}.{fraction:0{COST_DECIMALS}d}"
