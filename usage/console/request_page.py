"""The console's page of one request: of a chat, or of speech."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.addresses import reverse
from accounts.console.base import ConsoleView
from core.errors import ApiError, error_named
from usage.console.glossary import cause, cure, explained_at, figures
from usage.console.key_names import names_of
from usage.console.requests_page import REQUEST_ID, RowCost
from usage.models import Refusal, SpeechRow, UsageRow
from usage.queries.health import UNFAILED


class RequestPage(ConsoleView):
    """Why a request failed or was refused, how its cost was computed, its token counts, its other columns."""

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
        shown = (
            figures(row, "_tokens", cached=row.cached_input_tokens)
            if isinstance(row, UsageRow)
            else ()
        )
        return self.page(
            template,
            row=row,
            cost=cost,
            list_address=_list_address(self.request, default),
            key=names_of(self.organization, [key_id])[key_id],
            figures=shown,
            is_empty=not any(each.value for each in shown),
            outcome_meaning=cause(row.outcome),
            cure=cure(row.outcome),
            explained_at=explained_at(row),
            has_failed=row.outcome not in UNFAILED,
            **(self.more(row) if isinstance(row, UsageRow) else {}),
        )


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
