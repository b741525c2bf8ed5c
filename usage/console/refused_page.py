"""The console's list of refused requests: how many of each error, and the newest ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django import forms

from accounts.models import Scope
from core.errors import InvalidQuery
from usage.console.key_names import KeyName, names_of
from usage.console.period_page import PeriodPage
from usage.console.requests_page import PAGE_ROWS, surfaces
from usage.models import Refusal
from usage.queries import cursors
from usage.queries.latest import newest, of_period
from usage.queries.periods import UsageQuery
from usage.refusals.newest import KEPT_NEWEST
from usage.refusals.reading import Counted, counted

MOST_LINES: Final = 20


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """Refusals with one error, of one key; ``link`` shows them alone."""

    counted: Counted
    key: KeyName
    link: str


@dataclass(frozen=True, slots=True)
class RefusalLine:
    """One refused request."""

    row: Refusal
    key: KeyName


class ErrorForm(forms.Form):
    """The filter by error. A browser offers those of the period; any other may be asked for."""

    error = forms.CharField(label="Error", required=False, max_length=48)

    def __init__(self, data: Any, errors: list[str]) -> None:
        super().__init__(data)
        offered = sorted({*errors, *filter(None, [data.get("error")])})
        choices = [("", "All errors"), *((each, each) for each in offered)]
        self.fields["error"].widget = forms.Select(choices=choices)


class RefusedPage(PeriodPage):
    """Requests of the organization's keys that were answered with an error and have no row."""

    section = "requests"
    template = "console/refused.html"
    _counted: list[Counted] | None = None
    """Of the period, whatever the filters."""

    @property
    def key_scopes(self) -> tuple[Scope, ...]:
        return tuple(Scope)

    def archived_before(self, query: UsageQuery) -> datetime | None:
        return None

    def offered_models(self, query: UsageQuery) -> list[str]:
        return sorted({each.model for each in self._counted or () if each.model})

    def frame(self) -> dict[str, Any]:
        errors = [each.error for each in self._counted or ()]
        return {
            "filter_form": ErrorForm(self.page_query.parameters, errors),
            "surfaces": surfaces(self.page_query, "refused"),
            "kept": KEPT_NEWEST,
        }

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        organization_id = str(self.organization.pk)
        filters, error = query.filters, self.page_query.parameters.get("error")
        # PostgreSQL refuses NUL in a text.
        if error is not None and not error.isprintable():
            raise InvalidQuery("'error' must be the name of an error.", param="error")
        self._counted = counted(organization_id, query.period)
        chosen = [
            each
            for each in self._counted or ()
            if filters.model in (None, each.model)
            and filters.api_key_id in (None, each.api_key_id)
            and error in (None, each.error)
        ]
        rows = of_period(Refusal, organization_id, query.period, filters)
        if filters.model is not None:
            rows = rows.filter(model_identifier=filters.model)
        if error is not None:
            rows = rows.filter(error=error)
        cursor = self.request.GET.get("cursor")
        page = newest(rows, PAGE_ROWS, cursors.decode(cursor) if cursor else None)
        shown = chosen[:MOST_LINES]
        ids = {each.api_key_id for each in shown} | {str(row.api_key_id) for row in page.rows}
        names = names_of(self.organization, ids)
        return {
            "is_counted": self._counted is not None,
            "total": sum(each.count for each in chosen),
            "groups": [self._line(each, names[each.api_key_id]) for each in shown],
            "more": len(chosen) - len(shown),
            "lines": [RefusalLine(row, names[str(row.api_key_id)]) for row in page.rows],
            "newest": self.page_query.link() if cursor else None,
            "older": self.page_query.link(cursor=cursors.encode(page.older))
            if page.older
            else None,
        }

    def _line(self, each: Counted, key: KeyName) -> RefusedLine:
        link = self.page_query.link(
            error=each.error, api_key_id=each.api_key_id, model=each.model or None
        )
        return RefusedLine(each, key, link)
