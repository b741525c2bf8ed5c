"""The console's page of one request: of a chat, or of speech."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from usage.console.glossary import CURES, OUTCOMES, explained_at, figures
from usage.console.key_names import names_of
from usage.console.requests_page import REQUEST_ID, RowCost
from usage.models import SpeechRow, UsageRow
from usage.queries.overviews.health import UNFAILED


class RequestPage(ConsoleView):
    """Why a request failed, how its cost was computed, its token counts, its other columns."""

    section = "requests"

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        if not REQUEST_ID.fullmatch(request_id):
            raise Http404
        own = {"organization_id": self.organization.pk, "request_id": request_id}
        if (row := UsageRow.objects.filter(**own).first()) is not None:
            return self._show("console/request.html", row, RowCost.of(row))
        if (spoken := SpeechRow.objects.filter(**own).first()) is not None:
            return self._show("console/speech_request.html", spoken, None)
        raise Http404

    def _show(self, template: str, row: UsageRow | SpeechRow, cost: RowCost | None) -> HttpResponse:
        key_id = str(row.api_key_id)
        return self.page(
            template,
            row=row,
            cost=cost,
            key=names_of(self.organization, [key_id])[key_id],
            figures=figures(row, "_tokens") if isinstance(row, UsageRow) else (),
            outcome_meaning=OUTCOMES[row.outcome],
            cure=CURES.get(row.outcome, ""),
            explained_at=explained_at(row),
            has_failed=row.outcome not in UNFAILED,
        )
