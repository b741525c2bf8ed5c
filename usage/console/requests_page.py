"""The console's lists of requests, newest first: chats, and speech."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.addresses import redirect, reverse
from accounts.keys.keys import PREFIXES, cut_secrets
from accounts.models import ApiKey
from core.errors import ApiError, InvalidQuery
from core.money import cost_text, price_text, sum_costs, token_cost
from usage.console import request_filters
from usage.console.key_names import KeyName, names_of
from usage.console.live.watch import complete_to, watch_of
from usage.console.period_page import PeriodPage
from usage.console.query_string import SPEECH, PageQuery
from usage.console.request_filters import ChatFilters, RequestFilters, SpeechFilters
from usage.models import SpeechRow, UsageRow
from usage.queries import cursors
from usage.queries.latest import Page, newer, newest, of_period
from usage.queries.periods import UsageQuery, parse_query

PAGE_ROWS: Final = 50
_NOT_OF_SUMS: Final = dict.fromkeys({"sort", "error", *request_filters.NAMES} - {"voice"})
"""Filters of rows that the sums over time do not have, for a link to these."""
REQUEST_ID = re.compile(r"[\x21-\x7e]{1,36}")
"""The form of a request id. Others are not queried: PostgreSQL refuses NUL in a text."""


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


def surfaces(page_query: PageQuery, shown: str) -> list[tuple[str, str, bool]]:
    """The tabs above the lists of requests: their names, their addresses, and which one is ``shown``."""
    rows, refused = reverse("console-requests"), reverse("console-refused")
    return [
        ("Chat", rows + page_query.link(surface=None, error=None), shown == "chat"),
        ("Speech", rows + page_query.link(surface=SPEECH, model=None, error=None), shown == SPEECH),
        ("Refused", refused + page_query.link(surface=None), shown == "refused"),
    ]


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
    of one request, or of the key whose secret or prefix it is. The form sends it by POST, so that no
    secret is in an address.
    """

    section = "requests"
    template = "console/requests.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        if typed := request.GET.get("request_id", "").strip():
            return self._found(typed)
        return super().get(request)

    def post(self, request: HttpRequest) -> HttpResponse:
        if typed := request.POST.get("request_id", "").strip():
            return self._found(typed)
        return redirect("console-requests")

    def _found(self, typed: str) -> HttpResponse:
        if typed.startswith(tuple(PREFIXES.values())):
            own = ApiKey.objects.filter(organization=self.organization)
            shown = cut_secrets(typed).rstrip("…")
            # PostgreSQL refuses NUL in a text.
            key = own.filter(prefix=shown).first() if shown.isprintable() else None
            if key is not None:
                return redirect("console-key", key.pk)
            messages.error(self.request, f"{self.organization.name} has no key that begins so.")
            return redirect("console-keys")
        if "/" in typed or not REQUEST_ID.fullmatch(typed):
            raise Http404
        return redirect("console-request", typed)

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        cursor = self.request.GET.get("cursor")
        # Before the rows are read: those that it does not cover are shown again to the watcher.
        watch = None if cursor else watch_of(self.organization, query.period, self.page_query)
        selected = self.selected(query)
        page = selected.page(cursors.decode(cursor) if cursor else None)
        return {
            **self.listed(page),
            "watch": watch,
            "newest": self.page_query.link() if cursor else None,
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
            "older": self.page_query.link(cursor=cursors.encode(page.older))
            if page.older
            else None,
        }

    def frame(self) -> dict[str, Any]:
        """The variables of the page whether or not the filters are valid."""
        shown = surfaces(self.page_query, SPEECH if self.is_speech else "chat")
        filters = self._filter_set
        rare = [each for each in filters.form if each.name in filters.rare]
        return {
            "filter_form": [each for each in filters.form if each.name not in filters.rare],
            "more_filters": rare,
            "more_is_used": any(each.value() or each.errors for each in rare),
            "is_speech": self.is_speech,
            "surfaces": shown,
            "usage": reverse("console-usage") + self.page_query.link(**_NOT_OF_SUMS),
        }

    @cached_property
    def _filter_set(self) -> RequestFilters:
        kind = SpeechFilters if self.is_speech else ChatFilters
        return kind(self.page_query.parameters, queryset=kind.Meta.model._default_manager.none())

    def _filters(self) -> RequestFilters:
        """The valid filters. Raises ``InvalidQuery`` for the first wrong one."""
        filters = self._filter_set
        for name, complaints in filters.form.errors.items():
            raise InvalidQuery(f"{filters.form.fields[name].label}: {complaints[0]}", param=name)
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


class NewerRows(RequestsPage):
    """``GET /console/acme/requests/newer``: the same filters, rows and templates as the page itself.

    ``after``: the cursor that the page or the last answer gave. Rows between it and the end of a
    running commit are sent again, and the script leaves out those that are there. When more are new
    than a page holds, or without ``after``, the answer replaces the whole list.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        self.page_query = PageQuery.of(request.GET)
        given = request.GET.get("after")
        try:
            after = cursors.decode(given) if given else None
            query = parse_query(self.page_query.parameters)
            # Before the rows are read, so that a row committed meanwhile is sent again.
            complete = complete_to(after.occurred_at if after else None)
            page = self.selected(query).page(None, after)
        except ApiError as problem:
            return HttpResponse(problem.message, status=problem.status, content_type="text/plain")
        is_whole = after is None or page.older is not None
        return self.page(
            "console/_newer_requests.html",
            **self.listed(page),
            is_speech=self.is_speech,
            archived=self.archived_before(query),
            complete=complete,
            is_whole=is_whole,
        )
