"""Diagnostic captures in the admin; each time an operator opens one, a reading is recorded."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.models import User
from core.admin.restrictions import ReadOnly, SecretColumnsAdmin
from core.clock import now
from core.sealing import Unreadable
from inference.chat.captures import reveal
from inference.models.captures import CaptureReading, DiagnosticCapture
from usage.admin.read_only import with_organization

_TEXT: Final = '<pre tabindex="0">{}</pre>'
"""With a place in the order of focus, because it scrolls (WCAG 2.1.1)."""


@admin.register(DiagnosticCapture)
class DiagnosticCaptureAdmin(ReadOnly, SecretColumnsAdmin):
    """Records a ``CaptureReading``, then decrypts and shows the capture."""

    secret_columns: ClassVar[frozenset[str]] = frozenset({"content"})

    list_display = ("created_at", "organization", "request_id", "expires_at")
    search_fields = ("=request_id", "=organization_id")
    search_help_text = "A complete request id or organization id."
    fields = ("request_id", "organization_id", "created_at", "expires_at", "request", "answer")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        kept = super().get_queryset(request).filter(expires_at__gt=now()).defer("content")
        return with_organization(kept)

    @admin.display(description="organization")
    def organization(self, capture: Any) -> str:
        return str(capture.organization_name or capture.organization_id)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        capture = self.get_object(request, unquote(object_id))
        operator = request.user
        if (
            capture is not None
            and isinstance(operator, User)
            and self.has_view_permission(request, capture)
        ):
            CaptureReading.objects.create(
                request_id=capture.request_id,
                organization_id=capture.organization_id,
                operator=operator,
            )
        response = super().change_view(request, object_id, form_url, extra_context)
        response["cache-control"] = "no-store"
        return response

    @admin.display(description="request, as sent to the backend")
    def request(self, capture: DiagnosticCapture) -> SafeString:
        return _shown(capture, "request")

    @admin.display(description="answer, as received")
    def answer(self, capture: DiagnosticCapture) -> SafeString:
        return _shown(capture, "answer")


@admin.register(CaptureReading)
class CaptureReadingAdmin(ReadOnly, SecretColumnsAdmin):
    """Shows who read which capture, and when."""

    list_display = ("read_at", "operator", "organization", "request_id")
    list_select_related = ("operator",)
    search_fields = ("=request_id", "operator__email")

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_organization(super().get_queryset(request))

    @admin.display(description="organization")
    def organization(self, reading: Any) -> str:
        return str(reading.organization_name or reading.organization_id)


def _shown(capture: DiagnosticCapture, part: str) -> SafeString:
    try:
        content = reveal(capture)
    except Unreadable:
        return format_html(
            _TEXT,
            "Encrypted with a key that is no longer in SVC_CAPTURE_KEYS.",
        )
    text: str = getattr(content, part)
    there_was: int = getattr(content, f"{part}_bytes")
    kept = len(text.encode())
    if content.is_cut and kept < there_was:
        return format_html(
            "<p>Cut: the first {} of {} bytes were kept.</p>" + _TEXT,
            kept,
            there_was,
            text,
        )
    return format_html(_TEXT, text)
