"""The console's page of one request: of a chat, or of speech."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.addresses import reverse
from accounts.console.base import ConsoleView
from core.errors import ApiError, error_named
from usage.api.export_columns import export_row
from usage.console.explanations import cause, cure, explained_at
from usage.console.key_names import names_of
from usage.console.requests_page import REQUEST_ID, RowCost
from usage.models import Refusal, SpeechRow, UsageRow
from usage.models.statements import SUMMED
from usage.queries.health import UNFAILED

_COUNTS: Final = (
    ("Cached input", "cached_input_tokens"),
    ("Of which reasoning", "backend_reported_reasoning_tokens"),
    ("Generated output", "generated_output_tokens"),
    ("Delivered output", "delivered_output_tokens"),
    ("Input, counted independently", "svc_counted_input_tokens"),
    ("Output, counted independently", "svc_counted_output_tokens"),
)
"""Token counts of a row beside those that its cost is computed from; one that is null is not shown."""


class RequestPage(ConsoleView):
    """Why a request failed or was refused, how its cost was computed, its token counts, its row as JSON."""

    section = "requests"

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        if not REQUEST_ID.fullmatch(request_id):
            raise Http404
        own = {"organization_id": self.organization.pk, "request_id": request_id}
        if (row := UsageRow.objects.filter(**own).first()) is not None:
            return self._show("console/request.html", row, RowCost.of(row))
        if (spoken := SpeechRow.objects.filter(**own).first()) is not None:
            return self._show("console/speech_request.html", spoken, None)
        if (refused := Refusal.objects.filter(**own).first()) is not None:
            return self._show_refused(refused)
        raise Http404

    def more(self, row: UsageRow) -> dict[str, Any]:
        """Further variables of a chat's page, for apps that know more of it."""
        return {}

    def _show_refused(self, row: Refusal) -> HttpResponse:
        key_id, error = str(row.api_key_id), error_named(row.error) or ApiError
        return self.page(
            "console/refused_request.html",
            row=row,
            cause=error.cause or "It was refused.",
            cure=error.cure,
            list_address=_list_address(self.request, "", "console-refused"),
            key=names_of(self.organization, [key_id])[key_id],
        )

    def _show(self, template: str, row: UsageRow | SpeechRow, cost: RowCost | None) -> HttpResponse:
        key_id = str(row.api_key_id)
        default = "?surface=speech" if isinstance(row, SpeechRow) else ""
        return self.page(
            template,
            row=row,
            cost=cost,
            list_address=_list_address(self.request, default),
            key=names_of(self.organization, [key_id])[key_id],
            outcome_meaning=cause(row.outcome),
            cure=cure(row.outcome),
            explained_at=explained_at(row),
            has_failed=row.outcome not in UNFAILED,
            **(self._of_chat(row) if isinstance(row, UsageRow) else {}),
        )

    def _of_chat(self, row: UsageRow) -> dict[str, Any]:
        """The variables of a chat's page alone."""
        known = [(name, getattr(row, column)) for name, column in _COUNTS]
        return {
            "is_empty": not any(getattr(row, column) for column in SUMMED),
            "counts": [(name, count) for name, count in known if count is not None],
            "exported": msgspec.json.format(
                msgspec.json.encode(export_row(row)), indent=2
            ).decode(),
            **self.more(row),
        }


def _list_address(request: HttpRequest, default: str, name: str = "console-requests") -> str:
    """The list of requests, as the page that led here showed it: its filters, its place in time.

    ``default`` is the query string where a browser sends no ``Referer``.
    """
    address = reverse(name)
    came_from = request.headers.get("referer", "").partition("://")[2]
    page, _, query = came_from.partition("?")
    if page == f"{request.get_host()}{address}" and query:
        return f"{address}?{query}"
    return f"{address}{default}"
