"""The console's requests: a list, newest first, and a page for each one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.console import ConsoleView
from svc_project.lib.money import cost_text, price_text, sum_costs, token_cost
from usage import cursors
from usage.console import PeriodPage
from usage.key_names import KeyName, names_of
from usage.meanings import OUTCOMES, figures
from usage.models import UsageRow
from usage.periods import UsageQuery
from usage.recent import newest

PAGE_ROWS = 50
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,36}")
"""What an id can be; the database must not be asked for others: PostgreSQL refuses NUL in a text."""


@dataclass(frozen=True, slots=True)
class RowCost:
    """A row's cost written out: tokens / 10^6 x stamped price, all as text."""

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
    """A row as the list shows it."""

    row: UsageRow
    key: KeyName
    cost: RowCost


class RequestsPage(PeriodPage):
    """The rows of a period. ``cursor`` is the position that the page's rows come before.

    ``request_id`` finds one request and leads to its page.
    """

    section = "requests"
    template = "console/requests.html"

    def get(self, request: HttpRequest) -> HttpResponse:
        if request_id := request.GET.get("request_id", "").strip():
            if "/" in request_id or not _REQUEST_ID.fullmatch(request_id):
                raise Http404
            return redirect("console-request", request_id)
        return super().get(request)

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        cursor = self.request.GET.get("cursor")
        rows, older = newest(
            str(self.organization.pk),
            query.period,
            query.filters,
            PAGE_ROWS,
            cursors.decode(cursor) if cursor else None,
        )
        names = names_of(self.organization, {str(row.api_key_id) for row in rows})
        return {
            "lines": [
                RequestLine(row, names[str(row.api_key_id)], RowCost.of(row)) for row in rows
            ],
            "newest": self.place.link() if cursor else None,
            "older": self.place.link(cursor=cursors.encode(older)) if older else None,
        }


class RequestPage(ConsoleView):
    """One request: its cost as a sum, its figures side by side, and what else the row says."""

    section = "requests"

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        row = self._row(request_id)
        if row is None:
            raise Http404
        key_id = str(row.api_key_id)
        return self.page(
            "console/request.html",
            row=row,
            cost=RowCost.of(row),
            key=names_of(self.organization, [key_id])[key_id],
            figures=figures(row, "_tokens"),
            outcome_meaning=OUTCOMES[row.outcome],
        )

    def _row(self, request_id: str) -> UsageRow | None:
        if not _REQUEST_ID.fullmatch(request_id):
            return None
        return UsageRow.objects.filter(
            organization_id=self.organization.pk, request_id=request_id
        ).first()
