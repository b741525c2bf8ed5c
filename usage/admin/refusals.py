"""Refused requests in the admin: the newest of each organization."""

from __future__ import annotations

from django.contrib import admin

from usage.admin.read_only import AdmittedFilter, RequestsAdmin
from usage.models import Refusal


@admin.register(Refusal)
class RefusalAdmin(RequestsAdmin):
    """Requests that were answered with an error and have no row."""

    list_display = (
        "when",
        "only_organization",
        "only_key",
        "route",
        "status",
        "error",
        "message",
        "short_request_id",
    )
    list_filter = (AdmittedFilter, "status", "error", "route")
