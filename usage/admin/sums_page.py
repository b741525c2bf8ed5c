"""The operators' page of usage over all organizations, and its CSV."""

from __future__ import annotations

import csv
import io
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from accounts.models import ApiKey, Organization
from core import clock
from core.clock import midnight
from core.ids import NIL_UUID
from core.money import cost_text
from usage.api.export_views import slug
from usage.queries.everyone import By, Entry, sums, totals
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
        return Period(midnight(first), midnight(last) + timedelta(days=1))


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
    chosen = form.cleaned_data["organization"]
    whose = f"{slug(chosen)}-" if chosen else ""
    named = f"usage-{whose}by-{form.cleaned_data['by']}-{first}-{last}.csv"
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


class Names:
    """Names and admin pages of the organizations and keys in ``entries``."""

    def __init__(self, by: tuple[By, ...], entries: list[Entry]) -> None:
        ids = {each: {entry.key[at] for entry in entries} for at, each in enumerate(by)}
        self._organizations = dict(
            Organization.objects.filter(pk__in=ids.get(By.ORGANIZATION, ())).values_list(
                "pk", "name"
            )
        )
        self._keys = {
            pk: f"{prefix}… {label}".strip()
            for pk, prefix, label in ApiKey.objects.filter(
                pk__in=ids.get(By.API_KEY, ())
            ).values_list("pk", "prefix", "label")
        }

    def of(self, by: By, value: str) -> tuple[str, str]:
        """Return the name of ``value``, and the address of its admin page or an empty text."""
        if by is By.ORGANIZATION:
            return self._named(self._organizations, value, "admin:accounts_organization_change")
        if by is By.API_KEY:
            if value == str(NIL_UUID):
                return "without a key", ""
            return self._named(self._keys, value, "admin:accounts_apikey_change")
        return value, ""

    @staticmethod
    def _named(names: dict[uuid.UUID, str], value: str, page_name: str) -> tuple[str, str]:
        name = names.get(uuid.UUID(value))
        if name is None:
            return f"{value} (no longer here)", ""
        return name, reverse(page_name, args=[value])
