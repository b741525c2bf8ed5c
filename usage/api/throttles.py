"""Counts of throttled requests for the summary (inference contract, Throttled object)."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db.models import Q, Sum

from accounts.models import Organization
from core.clock import hour_of, now
from core.ids import NIL_UUID
from usage.api.wire import Throttled, ThrottledEntry
from usage.models import ThrottleCount
from usage.queries.periods import Period
from usage.queries.selection import Filters, columns
from usage.refusals.counts import KEPT, NOT_COUNTED

_UNAVAILABLE = Throttled(source="unavailable", total=None, by_limit_scope=[])


def read(organization_id: str, period: Period, filters: Filters) -> Throttled:
    """Return the refusals of every hour that ``period`` touches, by limit and model.

    ``unavailable`` when counting is disabled or was during the period, when the period starts
    before the oldest kept count, when it has not begun, and when it ended before the organization
    was created. Raises ``django.db.Error``.
    """
    moment = now()
    if not settings.SVC_THROTTLE_COUNTERS or not moment - KEPT <= period.start <= moment:
        return _UNAVAILABLE
    found = (
        ThrottleCount.objects.filter(
            Q(**columns(organization_id, filters))
            | Q(organization_id=NIL_UUID, limit_scope=NOT_COUNTED),
            hour__gte=hour_of(period.start),
            hour__lt=period.end,
        )
        .values_list("limit_scope", "model_identifier")
        .annotate(total=Sum("count"))
    )
    entries = [ThrottledEntry(*columns) for columns in sorted(found)]
    if any(entry.limit_scope == NOT_COUNTED for entry in entries):
        return _UNAVAILABLE
    if not entries and period.end <= moment and _is_younger(organization_id, period.end):
        return _UNAVAILABLE
    return Throttled(
        source="rejection_counters",
        total=sum(entry.count for entry in entries),
        by_limit_scope=entries,
    )


def _is_younger(organization_id: str, moment: datetime) -> bool:
    """Whether the organization was created at ``moment`` or later."""
    return Organization.objects.filter(pk=organization_id, created_at__gte=moment).exists()
