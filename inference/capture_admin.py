"""Diagnostic captures in the admin: an operator reads one, and the reading is recorded."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from accounts.models import User
from inference.capture_rows import CaptureReading, DiagnosticCapture
from inference.captures import UnreadableCapture, reveal
from svc_project.lib.admin_lookups import SecretColumnsAdmin
from svc_project.lib.clock import now


class ReadOnlyAdmin(SecretColumnsAdmin):
    """What operators may look at and never write."""

    show_full_result_count = False
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(DiagnosticCapture)
class DiagnosticCaptureAdmin(ReadOnlyAdmin):
    """Opening a capture decrypts it and writes a ``CaptureReading`` first."""

    secret_columns: ClassVar[frozenset[str]] = frozenset({"content"})

    list_display = ("request_id", "organization_id", "created_at", "expires_at")
    search_fields = ("=request_id", "=organization_id")
    search_help_text = "A request id or organization id, whole."
    fields = ("request_id", "organization_id", "created_at", "expires_at", "request", "answer")
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).filter(expires_at__gt=now()).defer("content")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        capture = self.get_object(request, object_id)
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

    @admin.display(description="answer, as it came")
    def answer(self, capture: DiagnosticCapture) -> SafeString:
        return _shown(capture, "answer")


@admin.register(CaptureReading)
class CaptureReadingAdmin(ReadOnlyAdmin):
    """Who read which capture, and when."""

    list_display = ("read_at", "operator", "request_id", "organization_id")
    list_select_related = ("operator",)
    search_fields = ("=request_id", "operator__email")


def _shown(capture: DiagnosticCapture, part: str) -> SafeString:
    try:
        content = reveal(capture)
    except UnreadableCapture:
        return format_html(
            "<pre>{}</pre>", "Made with a key that is no longer in SVC_CAPTURE_KEYS."
        )
    text: str = getattr(content, part)
    there_was: int = getattr(content, f"{part}_bytes")
    kept = len(text.encode())
    if content.is_cut and kept < there_was:
        return format_html(
            "<p>Cut: the first {} of {} bytes were kept.</p><pre>{}</pre>", kept, there_was, text
        )
    return format_html("<pre>{}</pre>", text)
