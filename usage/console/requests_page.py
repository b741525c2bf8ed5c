"""The console's lists of requests, newest first: chats, and speech."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from svc_project.lib.errors import InvalidQuery
from svc_project.lib.money import cost_text, price_text, sum_costs, token_cost
from usage.console.key_names import KeyName, names_of
from usage.console.live.watch import watch_of
from usage.console.period_page import PeriodPage
from usage.console.request_filters import ChatFilters, RequestFilters, SpeechFilters
from usage.models import SpeechRow, UsageRow
from usage.queries import cursors
from usage.queries.latest import Page, newer, newest, of_period
from usage.queries.periods import UsageQuery

PAGE_ROWS: Final = 50
REQUEST_ID = re.compile(r"[\x21-\x7e]{1,36}")
"""The form of a request id. Others are not queried: PostgreSQL refuses NUL in a text."""

SPEECH: Final = "speech"
"""The value of ``surface`` for the list of speech requests."""


@dataclass(frozen=True, slots=True)
class RowCost:
    """The computation of a row's cost: tokens / 10^6 x stamped price, all as text."""

    input_price: str
    output_price: str
    input: str
    output: str
    total: str

    @classmethod
    def of(cls, row: UsageRow) -> RowCost:
        """Inference contract, "Cost recomputation"."""
        amounts = (
            token_cost(row.backend_reported_input_tokens, row.input_price_per_mtok),
            token_cost(row.backend_reported_output_tokens, row.output_price_per_mtok),
        )
        return cls(
            price_text(row.input_price_per_mtok),
            price_text(row.output_price_per_mtok),
            cost_text(amounts[0]),
            cost_text(amounts[1]),
            cost_text(sum_costs(amounts)),
        )


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One row of the list; ``cost`` is of a chat."""

    row: UsageRow | SpeechRow
    key: KeyName
    cost: RowCost | None


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows of a list; ``chosen`` applies the filters that no index serves."""

    rows: QuerySet[Any]
    chosen: Callable[[QuerySet[Any]], QuerySet[Any]] | None

    def page(self, before: cursors.Cursor | None, after: cursors.Cursor | None = None) -> Page[Any]:
        """The newest rows between ``after`` and ``before``. Raises ``django.db.Error``."""
        rows = self.rows if after is None else newer(self.rows, after)
        return newest(rows, PAGE_ROWS, before, self.chosen)


class RequestsPage(PeriodPage):
    """The rows of a period. ``cursor`` is the position before which the page's rows are.

    ``surface=speech`` shows speech requests instead of chats; ``request_id`` redirects to the page
    of one request.
    """

    section = "requests"
    template = "console/requests.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        if request_id := request.GET.get("request_id", "").strip():
            if "/" in request_id or not REQUEST_ID.fullmatch(request_id):
                raise Http404
            return redirect("console-request", request_id)
        return super().get(request)

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        cursor = self.request.GET.get("cursor")
        # Before the rows are read: those that it does not cover are shown again to the watcher.
        watch = None if cursor else watch_of(self.organization, query.period, self.place)
        selected = self.selected(query)
        page = selected.page(cursors.decode(cursor) if cursor else None)
        return {
            **self.listed(page),
            "watch": watch,
            "newest": self.place.link() if cursor else None,
        }

    def listed(self, page: Page[Any]) -> dict[str, Any]:
        """The variables of the list itself."""
        names = names_of(self.organization, {str(row.api_key_id) for row in page.rows})
        return {
            "lines": [
                RequestLine(
                    row,
                    names[str(row.api_key_id)],
                    RowCost.of(row) if isinstance(row, UsageRow) else None,
                )
                for row in page.rows
            ],
            "searched_to": page.searched_to,
            "older": self.place.link(cursor=cursors.encode(page.older)) if page.older else None,
        }

    def frame(self) -> dict[str, Any]:
        """The variables of the page whether or not the filters are valid."""
        surfaces = (
            ("Chat", self.place.link(surface=None), not self.is_speech),
            ("Speech", self.place.link(surface=SPEECH, model=None), self.is_speech),
        )
        form = self._filter_set().form
        return {"filter_form": form, "is_speech": self.is_speech, "surfaces": surfaces}

    @property
    def is_speech(self) -> bool:
        return self.place.parameters.get("surface") == SPEECH

    def _filter_set(self) -> RequestFilters:
        kind = SpeechFilters if self.is_speech else ChatFilters
        return kind(self.place.parameters, queryset=kind.Meta.model._default_manager.none())

    def _filters(self) -> RequestFilters:
        """The valid filters. Raises ``InvalidQuery`` for the first wrong one."""
        filters = self._filter_set()
        for name, messages in filters.form.errors.items():
            raise InvalidQuery(f"{filters.form.fields[name].label}: {messages[0]}", param=name)
        return filters

    def selected(self, query: UsageQuery) -> Selected:
        """The rows of the period and the filters. Raises ``InvalidQuery``."""
        filters = self._filters()
        chosen = filters.filter_queryset if filters.is_active else None
        organization_id = str(self.organization.pk)
        if self.is_speech:
            spoken = of_period(SpeechRow, organization_id, query.period, query.filters)
            return Selected(spoken, chosen)
        rows = of_period(UsageRow, organization_id, query.period, query.filters)
        model = query.filters.model
        if model is None:
            return Selected(rows, chosen)
        return Selected(
            rows,
            lambda found: filters.filter_queryset(found.filter(model_identifier=model)),
        )
