"""The operators' page of usage over all organizations, and its CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from accounts.models import Organization
from svc_project.lib import clock
from svc_project.lib.money import cost_text
from usage.admin.names import Names
from usage.queries.overviews.everyone import By, Entry, sums, totals
from usage.queries.periods import Period

PERMISSION: Final = "usage.view_usagerow"
MOST_SHOWN: Final = 200
"""Groups that the page shows; the CSV has all."""

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

    def period(self) -> Period:
        """The chosen days, from midnight to midnight UTC."""
        first, last = self.cleaned_data["first"], self.cleaned_data["last"]
        return Period(_midnight(first), _midnight(last) + timedelta(days=1))


@dataclass(frozen=True, slots=True)
class Line:
    """A group as people read it."""

    names: tuple[tuple[str, str], ...]
    """For each part its name, and the address of its admin page or an empty text."""
    entry: Entry


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
        by = _GROUPS[form.cleaned_data["by"]]
        chosen = form.cleaned_data["organization"]
        entries = sums(form.period(), by, organization_id=str(chosen.pk) if chosen else None)
        if request.GET.get("format") == "csv":
            return _csv(form, by, entries)
        shown = entries[:MOST_SHOWN]
        context |= {
            "labels": [_LABELS[each] for each in by],
            "lines": _lines(by, shown),
            "left_out": len(entries) - len(shown),
            "totals": totals(entries),
            "csv": f"?{_query(request)}&format=csv",
        }
    return TemplateResponse(
        request, "admin/usage_sums.html", context, status=200 if form.is_valid() else 400
    )


def _lines(by: tuple[By, ...], entries: list[Entry]) -> list[Line]:
    names = Names(by, entries)
    return [Line(tuple(map(names.of, by, entry.key)), entry) for entry in entries]


def _csv(form: SumsForm, by: tuple[By, ...], entries: list[Entry]) -> HttpResponse:
    """One line for each group and currency, with exact costs."""
    names = Names(by, entries)
    content = io.StringIO()
    writer = csv.writer(content)
    writer.writerow(
        [
            *(name for each in by for name in _columns(each)),
            *("requests", "input_tokens", "output_tokens", "cost", "currency"),
        ]
    )
    for entry in entries:
        parts = zip(by, entry.key, strict=True)
        writer.writerow(
            [
                *(cell for each, value in parts for cell in _cells(each, value, names)),
                *(entry.requests, entry.input_tokens, entry.output_tokens),
                *(cost_text(entry.cost), entry.currency),
            ]
        )
    answer = HttpResponse(content.getvalue(), content_type="text/csv; charset=utf-8")
    first, last = form.cleaned_data["first"], form.cleaned_data["last"]
    named = f"usage-{form.cleaned_data['by']}-{first}-{last}.csv"
    answer["content-disposition"] = f'attachment; filename="{named}"'
    return answer


def _columns(by: By) -> tuple[str, ...]:
    if by in (By.ORGANIZATION, By.API_KEY):
        name = by.value if by is By.ORGANIZATION else "api_key"
        return f"{name}_id", name
    return (by.value,)


def _cells(by: By, value: str, names: Names) -> tuple[str, ...]:
    if by in (By.ORGANIZATION, By.API_KEY):
        return value, _plain(names.of(by, value)[0])
    return (_plain(value),)


def _plain(text: str) -> str:
    """Keep a spreadsheet from reading a name as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _query(request: HttpRequest) -> str:
    kept = request.GET.copy()
    kept.pop("format", None)
    return kept.urlencode()


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)
