"""Read-only admin pages of the audit log, with filters and search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from accounts.models import AuditEntry
from core.admin.columns import titled
from core.admin.restrictions import ReadOnly

if TYPE_CHECKING:  # generic in the stubs only
    EntryAdmin = admin.ModelAdmin[AuditEntry]
else:
    EntryAdmin = admin.ModelAdmin


_MOST_SHOWN: Final = 3
_LONGEST: Final = 60
"""Changes, and characters of a value, in a line of the list."""


class AuditEntryAdmin(ReadOnly, EntryAdmin):
    list_display = ("at", "what", "shortened", "actor", "door")
    list_filter = (("at", titled(admin.DateFieldListFilter, "when")), "source", "kind", "verb")
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

    def get_form(
        self,
        request: HttpRequest,
        obj: AuditEntry | None = None,
        change: bool = False,  # noqa: FBT002  # Django's
        **kwargs: Any,
    ) -> Any:
        """Replace the model's help texts: Django shows them as HTML, where ``<name>`` is a tag."""
        texts = {"actor": "An email address, or command: and its name.", "kind": ""}
        return super().get_form(request, obj, change, help_texts=texts, **kwargs)

    @admin.display(description="what", ordering="kind")
    def what(self, entry: AuditEntry) -> str:
        return f"{entry.kind} {entry.subject}: {entry.verb}"

    @admin.display(description="changes")
    def shortened(self, entry: AuditEntry) -> SafeString:
        """The first changes, each cut: the entry's page has them whole."""
        lines = [
            (name, _cut(was), _cut(now))
            for name, (was, now) in list(entry.changes.items())[:_MOST_SHOWN]
        ]
        left_out = len(entry.changes) - len(lines)
        return format_html(
            '<div class="svc-changes">{}{}</div>',
            format_html_join("", "<div>{}: {} → {}</div>", lines),
            f"and {left_out} more" if left_out else "",
        )

    @admin.display(description="through", ordering="source")
    def door(self, entry: AuditEntry) -> str:
        return f"{entry.get_source_display()} {entry.address or ''}".strip()

    @admin.display(description="changes")
    def shown(self, entry: AuditEntry) -> SafeString:
        lines = [(name, _text(was), _text(now)) for name, (was, now) in entry.changes.items()]
        return format_html_join("", "<div>{}: {} → {}</div>", lines)


def _cut(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
