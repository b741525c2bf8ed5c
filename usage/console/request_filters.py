"""The filters of the console's requests, of chats and of speech."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar, Final

import django_filters
from django import forms
from django.db.models import DecimalField, F, QuerySet
from django.db.models.functions import Cast

from usage.models import Outcome, Shape, SpeechOutcome, SpeechRow, Transport, UsageRow
from usage.queries.health import UNFAILED

FAILED: Final = "failed"
_STREAMED = (("true", "streamed"), ("false", "not streamed"))
_UNITS_OF_A_COST = Decimal(10) ** 14
"""Tokens times a stored price is a cost in units of 10^-14."""

# Exact on PostgreSQL, where the product of two 64-bit integers could overflow.
_EXACT: DecimalField[Any, Any] = DecimalField(max_digits=40, decimal_places=0)


def _number(label: str, method: str | None = None, **options: Any) -> django_filters.NumberFilter:
    widget = forms.TextInput(attrs={"inputmode": "decimal"})
    options = {"label": label, "min_value": 0, "widget": widget, **options}
    return django_filters.NumberFilter(method=method, **options)


class RequestFilters(django_filters.FilterSet):  # type: ignore[misc]  # django-filter carries no types
    """Filters of both kinds of requests. ``rare``: those that the page folds."""

    rare: ClassVar[frozenset[str]]

    def by_outcome(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        if value != FAILED:
            return rows.filter(outcome=value)
        return rows.exclude(outcome__in=UNFAILED)

    @property
    def is_active(self) -> bool:
        """Whether any filter restricts the rows."""
        return any(value not in (None, "") for value in self.form.cleaned_data.values())


class ChatFilters(RequestFilters):
    """Filters of chat requests."""

    rare = frozenset({"http_status", "streamed", "shape", "min_cost", "min_duration"})
    outcome = django_filters.ChoiceFilter(
        label="Outcome",
        choices=[(FAILED, "any failure"), *((each, each) for each in Outcome.values)],
        empty_label="All outcomes",
        method="by_outcome",
    )
    http_status = _number("Status")
    streamed = django_filters.ChoiceFilter(
        label="Streamed", choices=_STREAMED, empty_label="Both", method="by_streamed"
    )
    shape = django_filters.ChoiceFilter(
        label="Kind",
        choices=[(each, each.replace("_", " ")) for each in Shape.values],
        empty_label="All kinds",
    )
    min_cost = _number("Least cost", "by_cost")
    min_duration = _number("Least duration, ms", field_name="total_duration_ms", lookup_expr="gte")

    class Meta:
        model = UsageRow
        fields = ()

    def by_streamed(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        return rows.filter(streamed=value == "true")

    def by_cost(self, rows: QuerySet[Any], name: str, value: Decimal) -> QuerySet[Any]:
        def part(kind: str) -> Any:
            tokens = Cast(F(f"backend_reported_{kind}_tokens"), _EXACT)
            return tokens * Cast(F(f"{kind}_price_per_mtok"), _EXACT)

        units = (value * _UNITS_OF_A_COST).to_integral_value()
        found: QuerySet[Any] = rows.alias(units=part("input") + part("output"))
        return found.filter(units__gte=units)


class SpeechFilters(RequestFilters):
    """Filters of speech requests and sessions."""

    rare = frozenset({"http_status", "transport", "min_characters"})
    outcome = django_filters.ChoiceFilter(
        label="Outcome",
        choices=[
            (FAILED, "any failure"),
            *((each, each) for each in SpeechOutcome.values),
        ],
        empty_label="All outcomes",
        method="by_outcome",
    )
    http_status = _number("Status")
    voice = django_filters.CharFilter(label="Voice")
    transport = django_filters.ChoiceFilter(
        label="Transport", choices=Transport.choices, empty_label="Both"
    )
    min_characters = _number("Least characters", field_name="characters", lookup_expr="gte")

    class Meta:
        model = SpeechRow
        fields = ()


NAMES: Final = tuple(dict.fromkeys([*ChatFilters.base_filters, *SpeechFilters.base_filters]))
"""The names of all filters in the query string. ``outcome`` and others are of both kinds."""
