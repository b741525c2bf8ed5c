"""Pages that operators can view but not change."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


class ReadOnly:
    """Refuses to add, change and delete. A base of ``ModelAdmin`` classes, before it."""

    show_full_result_count = False
    actions: Any = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
