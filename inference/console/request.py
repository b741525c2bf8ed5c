"""The page of one request with the content of a failed one, for the owners of its organization."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse

from accounts.audit import trail
from core.clock import now
from core.sealing import Unreadable
from inference.chat.captures import reveal
from inference.models import FailedContent
from usage.console.request_page import RequestPage as UsageRequestPage
from usage.models import Outcome, UsageRow


class RequestPage(UsageRequestPage):
    """As the page of usage; a form shows the content, by POST, so that nothing reads it by itself."""

    def more(self, row: UsageRow) -> dict[str, Any]:
        kept = self._kept(row.request_id) if row.outcome != Outcome.SUCCESS else None
        if kept is None:
            return {}
        until: datetime = kept.expires_at
        return {"kept_until": until, "may_read": self.is_owner}

    def post(self, request: HttpRequest, request_id: str) -> HttpResponse:
        kept = self._kept(request_id) if self.is_owner else None
        if kept is None:
            raise Http404
        with transaction.atomic():
            trail.record("read", kept, {})
        try:
            content = reveal(kept)
        except Unreadable:
            content = None
        return self.page(
            "console/request_content.html",
            kept=kept,
            content=content,
            request_text=_indented(content.request) if content is not None else "",
        )

    def _kept(self, request_id: str) -> FailedContent | None:
        own = FailedContent.objects.filter(organization_id=self.organization.pk)
        return own.filter(pk=request_id, expires_at__gt=now()).first()


def _indented(text: str) -> str:
    """A JSON text with line breaks; any other, such as one that was cut, as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except msgspec.DecodeError:
        return text
