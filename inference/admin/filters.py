"""The sidebar filters of the models page, by the lifecycle status at this moment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from inference.catalog.lifecycle import Status
from inference.models import ModelEntry
from svc_project.lib import clock

SOON = timedelta(days=30)


class StatusFilter(admin.SimpleListFilter):
    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, str(status.label)) for status in Status]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ModelEntry]
    ) -> QuerySet[ModelEntry]:
        """Filter in SQL by the same rules as ``inference.catalog.lifecycle.status``."""
        now = clock.now()
        retired = Q(shutdown_at__lte=now)
        conditions = {
            Status.DRAFT.value: Q(published_at__isnull=True),
            Status.ACTIVE.value: Q(published_at__isnull=False, superseded_at__isnull=True),
            Status.SUPERSEDED.value: Q(superseded_at__isnull=False)
            & (Q(shutdown_at__isnull=True) | Q(shutdown_at__gt=now)),
            Status.RETIRED.value: retired,
        }
        return queryset.filter(conditions.get(self.value() or "", Q()))


class ShuttingDownFilter(admin.SimpleListFilter):
    title = "shutdown"
    parameter_name = "shutdown"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("soon", f"Within {SOON.days} days")]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[ModelEntry]
    ) -> QuerySet[ModelEntry]:
        if self.value() != "soon":
            return queryset
        now = clock.now()
        return queryset.filter(shutdown_at__gt=now, shutdown_at__lte=now + SOON)
