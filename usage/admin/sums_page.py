"""The operators' page of usage over all organizations, and its CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from accounts.models import Organization
from core import clock
from core.clock import midnight
from core.money import cost_text
from usage.admin.sums_lines import Selection, Sums, chart_of, sums_of
from usage.console.totals import plain
from usage.queries.everyone import By
from usage.queries.periods import Period

PERMISSION: Final = "usage.view_usagerow"
MOST_SHOWN: Final = 200
"""Groups that the page shows; the CSV has all."""

_DAY: Final = timedelta(days=1)
_SPEECH: Final = ("requests", "characters", "audio_ms")
_DEFAULT_DAYS: Final = 30
_MOST_DAYS: Final = 366
_LABELS: Final[Mapping[By, str]] = {
    By.ORGANIZATION: "Organization",
    By.MODEL: "Model",
    By.API_KEY: "API key",
    By.DAY: "Day",
}
_GROUPS: Final[Mapping[str, tuple[By, ...]]] = {
    "organization": (By.ORGANIZATION,),
    "model": (By.MODEL,),
    "key": (By.ORGANIZATION, By.API_KEY),
    "day": (By.DAY,),
    "organization-model": (By.ORGANIZATION, By.MODEL),
    "organization-day": (By.ORGANIZATION, By.DAY),
    "model-day": (By.MODEL, By.DAY),
}


class SumsForm(forms.Form):
    """The period and the grouping; days are UTC, the last one inclusive."""

    first = forms.DateField(label="From", widget=forms.DateInput({"type": "date"}))
    last = forms.DateField(label="To", widget=forms.DateInput({"type": "date"}))
    by = forms.ChoiceField(
        label="By",
        choices=[
            (name, " and ".join(_LABELS[each].lower() for each in by))
            for name, by in _GROUPS.items()
        ],
    )
    organization = forms.ModelChoiceField(
        Organization.objects.order_by("name"), required=False, empty_label="all"
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        first, last = cleaned.get("first"), cleaned.get("last")
        if first and last and last < first:
            raise ValidationError({"last": "This day is before the first one."})
        if first and last and (last - first).days >= _MOST_DAYS:
            raise ValidationError({"last": f"A period has at most {_MOST_DAYS} days."})
        return cleaned

    def selection(self) -> Selection:
        """What is chosen; days are from midnight to midnight UTC."""
        first, last = self.cleaned_data["first"], self.cleaned_data["last"]
        chosen = self.cleaned_data["organization"]
        return Selection(
            Period(midnight(first), midnight(last) + _DAY),
            _GROUPS[self.cleaned_data["by"]],
            str(chosen.pk) if chosen else None,
        )


def page(request: HttpRequest) -> HttpResponse:
    """Show usage over all organizations, or send it as CSV (``?format=csv``).

    Raises ``PermissionDenied`` without the right to view the ledger.
    """
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    today = clock.now().date()
    initial = {
        "first": (today - timedelta(days=_DEFAULT_DAYS - 1)).isoformat(),
        "last": today.isoformat(),
        "by": "organization",
    }
    form = SumsForm({**initial, **{name: value for name, value in request.GET.items() if value}})
    context: dict[str, Any] = {
        **admin.site.each_context(request),
        "title": "Usage over all organizations",
        "form": form,
    }
    if form.is_valid():
        selection = form.selection()
        found = sums_of(selection)
        if request.GET.get("format") == "csv":
            return _csv(form, selection, found)
        shown = found.lines[:MOST_SHOWN]
        context |= {
            "labels": [_LABELS[each] for each in selection.by],
            "lines": shown,
            "left_out": len(found.lines) - len(shown),
            "found": found,
            "selection": selection,
            "before": _days(selection.before),
            "chart": chart_of(selection),
            "csv": f"?{_query(request)}&format=csv",
        }
    return TemplateResponse(
        request, "admin/usage_sums.html", context, status=200 if form.is_valid() else 400
    )


def _days(period: Period | None) -> tuple[date, date] | None:
    """The first and the last day of ``period``."""
    return None if period is None else (period.start.date(), (period.end - _DAY).date())


def _csv(form: SumsForm, selection: Selection, found: Sums) -> HttpResponse:
    """One line for each group and currency, with exact costs."""
    content = io.StringIO()
    writer = csv.writer(content)
    compared = ("cost_before",) if selection.before is not None else ()
    speech = _SPEECH if selection.has_speech else ()
    writer.writerow(
        [
            *(name for each in selection.by for name in _columns(each)),
            *("requests", "input_tokens", "output_tokens", "cost", "currency", "failed"),
            *compared,
            *(f"speech_{name}" for name in speech),
        ]
    )
    for line in found.lines:
        entry = line.entry
        writer.writerow(
            [
                *(
                    cell
                    for each, value, name in zip(selection.by, entry.key, line.names, strict=True)
                    for cell in _cells(each, value, name[0])
                ),
                *(entry.requests, entry.input_tokens, entry.output_tokens),
                *(cost_text(entry.cost), entry.currency, entry.failed),
                *(() if line.before is None else (cost_text(line.before),)),
                *(getattr(line.speech, name, 0) for name in speech),
            ]
        )
    answer = HttpResponse(content.getvalue(), content_type="text/csv; charset=utf-8")
    first, last = form.cleaned_data["first"], form.cleaned_data["last"]
    chosen = form.cleaned_data["organization"]
    whose = f"{chosen.slug}-" if chosen else ""
    named = f"usage-{whose}by-{form.cleaned_data['by']}-{first}-{last}.csv"
    answer["content-disposition"] = f'attachment; filename="{named}"'
    return answer


def _columns(by: By) -> tuple[str, ...]:
    if by in (By.ORGANIZATION, By.API_KEY):
        name = by.value if by is By.ORGANIZATION else "api_key"
        return f"{name}_id", name
    return (by.value,)


def _cells(by: By, value: str, name: str) -> tuple[str, ...]:
    if by in (By.ORGANIZATION, By.API_KEY):
        return value, plain(name)
    return (plain(value),)


def _query(request: HttpRequest) -> str:
    kept = request.GET.copy()
    kept.pop("format", None)
    return kept.urlencode()
