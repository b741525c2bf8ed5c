"""Prices of the catalog: appended, never edited, and in force by the clock.

A usage row is stamped with the price in force when its request was admitted, so a price may be
entered ahead but never for the past: written rows keep theirs. An announced price can be withdrawn
until ``WITHDRAWN_BEFORE`` its moment; it then never prices a request.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.changes import CATALOG, lock
from core import clock
from core.money import price_units
from inference.models import ModelEntry, Price, PriceWithdrawal

CERTAIN: Final = timedelta(minutes=15)
"""For so long after a worker last knew that its catalog is the newest, announced prices begin on time.

Keys are known without the database for as long, by default.
"""
WITHDRAWN_BEFORE: Final = timedelta(minutes=20)
"""How long before its moment a price can last be withdrawn.

It is longer than ``CERTAIN``, by more than the transaction and different clocks may take, so no worker
applies a withdrawn price, whatever it has in memory (``Catalog.pricing_time``).
"""


class PriceError(Exception):
    """A price cannot be added or withdrawn; ``field`` is the column of ``Price`` that is wrong."""

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


def free_moment(entry: ModelEntry, moment: datetime) -> datetime:
    """Return ``moment``, or the next microsecond that no withdrawn price of ``entry`` has.

    A price that replaces a withdrawn one usually begins when that would have begun.
    """
    withdrawn = Price.objects.filter(entry=entry, withdrawal__isnull=False)
    taken = set(withdrawn.values_list("effective_from", flat=True))
    while moment in taken:
        moment += timedelta(microseconds=1)
    return moment


def can_withdraw(price: Price, now: datetime) -> bool:
    """Whether ``price`` was announced, stands, and begins late enough to be withdrawn at ``now``."""
    return (
        now + WITHDRAWN_BEFORE < price.effective_from
        and not PriceWithdrawal.objects.filter(price=price).exists()
    )


@transaction.atomic
def withdraw(price: Price) -> None:
    """Append the withdrawal of an announced price. Raises ``PriceError`` where that is too late."""
    # One after the other, and in the order in which loads of a catalog file lock.
    lock(CATALOG)
    if PriceWithdrawal.objects.filter(price=price).exists():
        raise PriceError("price", "This price was already withdrawn.")
    now = clock.now()
    if price.effective_from <= now:
        raise PriceError("price", "This price is or was in force, and stays. Add a new one.")
    if not can_withdraw(price, now):
        minutes = WITHDRAWN_BEFORE // timedelta(minutes=1)
        raise PriceError(
            "price",
            f"This price begins within {minutes} minutes, and a worker that the database does not "
            "answer may not learn of a withdrawal in time. Add the right price, from the moment after it.",
        )
    PriceWithdrawal.objects.create(price=price)


def price_in_force(entry: ModelEntry, at: datetime) -> Price | None:
    """Return the price of ``entry`` in force at ``at``, or None."""
    standing = Price.objects.standing().filter(entry=entry)
    return standing.filter(effective_from__lte=at).order_by("-effective_from").first()


def prices_in_force(at: datetime) -> dict[uuid.UUID, Price]:
    """Return the price in force at ``at`` of each model that has one, by the model's id."""
    begun = Price.objects.standing().filter(effective_from__lte=at).order_by("effective_from")
    return {price.entry_id: price for price in begun}


def price_history() -> dict[uuid.UUID, dict[tuple[int, int, str], datetime]]:
    """Return every price of each model by its id, with the moment at which it first took effect.

    Withdrawn ones are left out. Prices are in units of 10^-8 (``usage.verification.rows``). Raises
    ``django.db.Error``.
    """
    found: dict[uuid.UUID, dict[tuple[int, int, str], datetime]] = {}
    for price in Price.objects.standing().order_by("effective_from"):
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
    if before is not None and terms(before) == terms(price):
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
        effective_from=free_moment(entry, clock.now()),
    )
    try:
        price.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise PriceError(field, messages[0]) from None
    return price


def terms(price: Price) -> tuple[Decimal, Decimal, str]:
    """What ``price`` is per million tokens: of input, of output, and its currency."""
    return price.input_per_mtok, price.output_per_mtok, price.currency
