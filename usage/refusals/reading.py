"""What the pages show of an organization's refused requests: sums of the counts by hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Sum

from core.clock import hour_of, now
from core.ids import NIL_UUID
from usage.models import RefusalCount, ThrottleCount
from usage.queries.periods import Period
from usage.queries.selection import Filters, columns
from usage.refusals.counts import KEPT, NOT_COUNTED


@dataclass(frozen=True, slots=True)
class Counted:
    """Refusals with one error, of one key. ``model`` is empty where no published model was asked for."""

    error: str
    api_key_id: str
    model: str
    count: int


def counted(
    organization_id: str, period: Period, filters: Filters | None = None
) -> list[Counted] | None:
    """Return the refusals of every hour that ``period`` touches, the most frequent first.

    None when counting is disabled or was during the period, and when the period starts before the oldest
    kept count. Raises ``django.db.Error``.
    """
    hours = {"hour__gte": hour_of(period.start), "hour__lt": period.end}
    if not settings.SVC_THROTTLE_COUNTERS or period.start < now() - KEPT or _has_gap(hours):
        return None
    found = (
        RefusalCount.objects.filter(**columns(organization_id, filters or Filters()), **hours)
        .values_list("error", "api_key_id", "model_identifier")
        .annotate(total=Sum("count"))
    )
    each = [Counted(error, str(key), model, total) for error, key, model, total in found]
    return sorted(each, key=lambda one: (-one.count, one.error, one.api_key_id, one.model))


def _has_gap(hours: Mapping[str, datetime]) -> bool:
    markers = ThrottleCount.objects.filter(organization_id=NIL_UUID, limit_scope=NOT_COUNTED)
    return markers.filter(**hours).exists()
