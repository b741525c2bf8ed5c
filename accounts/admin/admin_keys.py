"""The operators' page of admin keys, which commands make and revoke."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from accounts.keys import keys
from accounts.models import AdminKey
from core.admin.restrictions import ReadOnly, SecretColumnsAdmin


class AdminKeyAdmin(ReadOnly, SecretColumnsAdmin):
    secret_columns: ClassVar[frozenset[str]] = frozenset({"digest", "pepper"})

    list_display = ("shown_prefix", "label", "shown_status", "expires_at", "created_at")
    search_fields = ("prefix", "label")
    fields = (
        "shown_prefix",
        "id",
        "label",
        "shown_status",
        "created_at",
        "expires_at",
        "revoked_at",
    )

    @admin.display(description="key", ordering="prefix")
    def shown_prefix(self, admin_key: AdminKey) -> str:
        return f"{admin_key.prefix}…"

    @admin.display(description="status")
    def shown_status(self, admin_key: AdminKey) -> str:
        return str(keys.status(admin_key).label)
