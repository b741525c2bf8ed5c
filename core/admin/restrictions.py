"""What operators cannot do on an admin page: change rows, filter by a secret column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
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


if TYPE_CHECKING:  # generic in the stubs only
    AnyModelAdmin = admin.ModelAdmin[Any]
else:
    AnyModelAdmin = admin.ModelAdmin


class SecretColumnsAdmin(AnyModelAdmin):
    """Refuses to filter by ``secret_columns``.

    Django lets a URL filter a list by every column of its model, shown or not, so a reader of the
    list could find out a hidden value letter by letter.
    """

    secret_columns: ClassVar[frozenset[str]] = frozenset()

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        if self.secret_columns.intersection(lookup.split("__")):
            return False
        return super().lookup_allowed(lookup, value, request)
