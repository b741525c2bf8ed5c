"""The sidebar filters of the pages of clones and their copies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from speech.models import CloneUpload, VoiceClone
from svc_project.lib import clock

OVERDUE_AFTER = timedelta(minutes=30)
"""Time since the clone's deletion; by then the deletion was retried several times."""


class CloneStateFilter(admin.SimpleListFilter):
    """Filters existing clones, or tombstones."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("existing", "Existing"), ("deleted", "Deleted (tombstones)")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[VoiceClone]
    ) -> QuerySet[VoiceClone]:
        if self.value() == "existing":
            return queryset.filter(deleted_at=None)
        if self.value() == "deleted":
            return queryset.exclude(deleted_at=None)
        return queryset


class OverdueFilter(admin.SimpleListFilter):
    title = "deletion"
    parameter_name = "deletion"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("due", "Due"), ("overdue", "Overdue: the backend does not answer")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[CloneUpload]
    ) -> QuerySet[CloneUpload]:
        due = queryset.exclude(delete_after=None)
        if self.value() == "due":
            return due
        if self.value() == "overdue":
            return due.filter(clone__deleted_at__lte=clock.now() - OVERDUE_AFTER)
        return queryset
