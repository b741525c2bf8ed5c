"""The audit log in the admin: to be read, filtered and searched, never written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from accounts.models import AuditEntry

if TYPE_CHECKING:  # generic in the stubs only
    EntryAdmin = admin.ModelAdmin[AuditEntry]
else:
    EntryAdmin = admin.ModelAdmin


class AuditEntryAdmin(EntryAdmin):
    list_display = ("at", "actor", "source", "address", "kind", "subject", "verb", "shown")
    list_filter = ("at", "source", "kind", "verb")
    search_fields = ("=actor", "=subject_id", "=organization_id", "subject")
    search_help_text = "An actor or an id, whole, or a part of what was changed."
    fields = (
        "at",
        "actor",
        "source",
        "address",
        "kind",
        "subject",
        "subject_id",
        "organization_id",
        "verb",
        "shown",
    )
    readonly_fields = fields
    show_full_result_count = False
    actions = None

    @admin.display(description="changes")
    def shown(self, entry: AuditEntry) -> SafeString:
        lines = [(name, _text(was), _text(now)) for name, (was, now) in entry.changes.items()]
        return format_html_join("", "<div>{}: {} → {}</div>", lines)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
