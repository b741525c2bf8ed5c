"""Prices of the catalog: appended, never edited, and in force by the clock.

A usage row is stamped with the price in force when its request was admitted, so a price may be
entered ahead but never for the past: written rows keep theirs.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction

from core import clock
from core.money import price_units
from inference.models import ModelEntry, Price


class PriceError(Exception):
    """A price cannot be added; ``field`` is the column of ``Price`` that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def effective_moment(given: datetime | None) -> datetime:
    """Return when a new price takes effect: ``given``, or now.

    Raises ``PriceError`` for a moment in the past, even on a draft.
    """
    now = clock.now()
    if given is None:
        return now
    if given < now:
        raise PriceError(
            "effective_from",
            "A price cannot take effect in the past. Leave the moment out for now.",
        )
    return given


def price_in_force(entry: ModelEntry, at: datetime) -> Price | None:
    """Return the price of ``entry`` in force at ``at``, or None."""
    return entry.prices.filter(effective_from__lte=at).order_by("-effective_from").first()


def prices_in_force(at: datetime) -> dict[uuid.UUID, Price]:
    """Return the price in force at ``at`` of each model that has one, by the model's id."""
    begun = Price.objects.filter(effective_from__lte=at).order_by("effective_from")
    return {price.entry_id: price for price in begun}


def price_history() -> dict[uuid.UUID, dict[tuple[int, int, str], datetime]]:
    """Return every price of each model by its id, with the moment at which it first took effect.

    Prices are in units of 10^-8 (``usage.verification.rows``). Raises ``django.db.Error``.
    """
    found: dict[uuid.UUID, dict[tuple[int, int, str], datetime]] = {}
    for price in Price.objects.order_by("effective_from"):
        stamped = (
            price_units(price.input_per_mtok),
            price_units(price.output_per_mtok),
            price.currency,
        )
        found.setdefault(price.entry_id, {}).setdefault(stamped, price.effective_from)
    return found


def ensure_price(
    entry: ModelEntry, input_per_mtok: str, output_per_mtok: str, currency: str
) -> Price | None:
    """Append a price in force from now, unless the one in force is the same.

    Returns the appended price, or None. Raises ``PriceError`` that names the column.
    """
    price = _checked(entry, input_per_mtok, output_per_mtok, currency)
    before = price_in_force(entry, price.effective_from)
    if before is not None and _terms(before) == _terms(price):
        return None
    with transaction.atomic():
        price.save()
    return price


def _checked(
    entry: ModelEntry,
    input_per_mtok: str,
    output_per_mtok: str,
    currency: str,
) -> Price:
    """A price in force from now. Raises ``PriceError`` that names the column."""
    price = Price(
        entry=entry,
        input_per_mtok=input_per_mtok,
        output_per_mtok=output_per_mtok,
        currency=currency,
        effective_from=clock.now(),
    )
    try:
        price.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise PriceError(field, messages[0]) from None
    return price


def _terms(price: Price) -> tuple[Decimal, Decimal, str]:
    return price.input_per_mtok, price.output_per_mtok, price.currency
