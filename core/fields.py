"""Model fields shared by the apps."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db import models

from core.money import PRICE_DECIMALS, PRICE_DIGITS, parse_price

_UNIT = Decimal(1).scaleb(-PRICE_DECIMALS)


class _PriceInput(forms.DecimalField):
    """A price in a form, of the same texts as elsewhere."""

    def to_python(self, value: Any) -> Any:
        if value not in self.empty_values and "_" in str(value):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class PriceField(models.BigIntegerField):  # type: ignore[type-arg]  # generic in the stubs only
    """A price per million tokens: a ``Decimal`` in Python, whole units of 10^-8 in the database.

    SQLite would keep a decimal column as a floating point number; an integer is exact on every
    database, and sums and products of it stay exact there too.
    """

    description = "Price with at most 8 decimals"

    def from_db_value(self, value: int | None, *_: object) -> Decimal | None:
        return None if value is None else Decimal(value) * _UNIT

    def to_python(self, value: Any) -> Decimal | None:
        if value is None or isinstance(value, Decimal):
            return value
        try:
            return parse_price(str(value))
        except ValueError as error:
            raise ValidationError(str(error)) from None

    def get_prep_value(self, value: Any) -> int | None:
        if value is None:
            return None
        try:
            return int(parse_price(str(value)).scaleb(PRICE_DECIMALS))
        except ValueError as error:
            raise ValidationError(str(error)) from None

    @property
    def validators(self) -> list[Any]:
        return []

    def formfield(self, **kwargs: Any) -> Any:
        return models.Field.formfield(
            self,
            **{
                "form_class": _PriceInput,
                "min_value": 0,
                "max_digits": PRICE_DIGITS,
                "decimal_places": PRICE_DECIMALS,
                **kwargs,
            },
        )
