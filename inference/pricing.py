"""Prices of the catalog: appended, never edited, in force by the clock.

The price stamped on a usage row is the one in force when its request was admitted, so a price may
be entered ahead but never for the past: rows already written keep theirs.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction

from inference.models import ModelEntry, Price
from svc_project.lib import clock


class PriceError(Exception):
    """A price that cannot be added; ``field`` is the column it is about, in the words of Price."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def effective_moment(given: datetime | None) -> datetime:
    """The moment a new price takes effect: ``given``, or now.

    Raises ``PriceError`` for a moment that has passed, on a draft too.
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
    """The latest price of ``entry`` that has taken effect at ``at``."""
    return entry.prices.filter(effective_from__lte=at).order_by("-effective_from").first()


def add_price(
    entry: ModelEntry,
    input_per_mtok: str,
    output_per_mtok: str,
    currency: str,
    effective_from: datetime | None = None,
) -> Price:
    """Append a price per million tokens, in force from ``effective_from`` (default: now).

    A price that was planned stays planned: one entered now holds until then. To take a planned
    price back, add the right one a moment after it. Raises ``PriceError`` that names the column.
    """
    price = _checked(entry, input_per_mtok, output_per_mtok, currency, effective_from)
    with transaction.atomic():
        price.save()
    return price


def ensure_price(
    entry: ModelEntry, input_per_mtok: str, output_per_mtok: str, currency: str
) -> Price | None:
    """Append a price in force from now, unless the one in force says the same.

    Returns what was appended. Raises ``PriceError`` that names the column.
    """
    price = _checked(entry, input_per_mtok, output_per_mtok, currency, None)
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
    effective_from: datetime | None,
) -> Price:
    price = Price(
        entry=entry,
        input_per_mtok=input_per_mtok,
        output_per_mtok=output_per_mtok,
        currency=currency,
        effective_from=effective_moment(effective_from),
    )
    try:
        price.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise PriceError(field, messages[0]) from None
    return price


def _terms(price: Price) -> tuple[Decimal, Decimal, str]:
    return price.input_per_mtok, price.output_per_mtok, price.currency
