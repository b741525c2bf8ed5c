"""Speech in the admin: rows by request and sums by day."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from usage.admin.read_only import (
    AdmittedFilter,
    LedgerAdmin,
    OutcomeFilter,
    RequestsAdmin,
    named_organization,
    with_organization,
)
from usage.models import SpeechDay, SpeechRow
from usage.templatetags.formats import duration


@admin.register(SpeechRow)
class SpeechRowAdmin(RequestsAdmin):
    """Speech requests and sessions, the latest admission first."""

    list_display = (
        "when",
        "only_organization",
        "only_key",
        "voice",
        "shown_outcome",
        "transport",
        "response_format",
        "shown_characters",
        "shown_audio",
        "short_request_id",
    )
    list_filter = (
        AdmittedFilter,
        OutcomeFilter,
        "close_code",
        "response_format",
        "transport",
        "cloned",
    )

    @admin.display(description="characters")
    def shown_characters(self, row: SpeechRow) -> str:
        return f"{row.characters:,}"

    @admin.display(description="audio")
    def shown_audio(self, row: SpeechRow) -> str:
        return duration(row.audio_ms)


@admin.register(SpeechDay)
class SpeechDayAdmin(LedgerAdmin):
    """Speech of organizations by UTC day, the latest first."""

    list_display = (
        "day",
        "only_organization",
        "shown_requests",
        "shown_characters",
        "shown_audio",
    )
    list_filter = ("day",)
    search_fields = ("organization_id",)
    search_help_text = "An organization's id or name, whole."
    ordering: ClassVar[tuple[str, ...]] = ("-day", "organization_id")
    fields = ("day", "shown_organization_id", "requests", "characters", "audio_ms")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_organization(super().get_queryset(request))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the days of the organization with the id or name ``search_term``."""
        if not (term := search_term.strip()):
            return queryset, False
        return queryset.filter(organization_id=named_organization(term)), False

    @admin.display(description="requests")
    def shown_requests(self, day: SpeechDay) -> str:
        return f"{day.requests:,}"

    @admin.display(description="characters")
    def shown_characters(self, day: SpeechDay) -> str:
        return f"{day.characters:,}"

    @admin.display(description="audio")
    def shown_audio(self, day: SpeechDay) -> str:
        return duration(day.audio_ms)
