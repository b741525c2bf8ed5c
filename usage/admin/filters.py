"""Filters and counts of the ledger's admin pages that never read the whole ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from svc_project.lib import clock
from usage.models.partitions import lower_bound

if TYPE_CHECKING:  # generic in the stubs only
    RowPaginator = Paginator[Any]
else:
    RowPaginator = Paginator

MOST_COUNTED = 10_000


class BoundedPaginator(RowPaginator):
    """Stops counting at ``MOST_COUNTED``: a full count is slow, and later pages are not used."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]  # the admin gives no list
        return rows.order_by()[:MOST_COUNTED].count()


def _month(now: datetime) -> datetime:
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


_SINCE: dict[str, tuple[str, Callable[[datetime], datetime]]] = {
    "hour": ("Past hour", lambda now: now - timedelta(hours=1)),
    "day": ("Past 24 hours", lambda now: now - timedelta(days=1)),
    "month": ("This month", _month),
    "quarter": ("Past 93 days", lambda now: now - timedelta(days=93)),
}


class AdmittedFilter(admin.SimpleListFilter):
    """Filters by the time of admission, which is in the request id and so in the primary key.

    So the newest rows are found, and old partitions skipped, without an index on the time over all
    organizations. The default is the past 7 days; an exact search covers all rows.
    """

    title = "admitted"
    parameter_name = "admitted"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            *((name, label) for name, (label, _) in _SINCE.items()),
            ("any", "Any time (may be slow)"),
        ]

    def choices(self, changelist: Any) -> Any:
        shown = super().choices(changelist)
        yield {**next(shown), "display": "Past 7 days"}
        yield from shown

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        if chosen == "any" or (chosen is None and request.GET.get("q")):
            return queryset
        now = clock.now()
        since = _SINCE[chosen][1](now) if chosen in _SINCE else now - timedelta(days=7)
        return queryset.filter(request_id__gte=lower_bound(since))
