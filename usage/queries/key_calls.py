"""Which API keys of an organization called which models lately, from the roll-ups."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Sum

from core.clock import hour_of
from usage.models import UsageRollup


@dataclass(frozen=True, slots=True)
class KeyCalls:
    """One key's requests to one model; ``last_hour`` is the hour of the latest one."""

    model_identifier: str
    api_key_id: str
    requests: int
    last_hour: datetime


def key_calls(organization_id: str, models: Collection[str], since: datetime) -> list[KeyCalls]:
    """Return who called one of ``models`` since the hour of ``since``, most requests first.

    Raises ``django.db.Error``.
    """
    if not models:
        return []
    found = (
        UsageRollup.objects.filter(
            organization_id=organization_id,
            hour__gte=hour_of(since),
            model_identifier__in=models,
        )
        .values_list("model_identifier", "api_key_id")
        .annotate(number=Sum("requests"), last=Max("hour"))
        .order_by("-number")
    )
    return [KeyCalls(model, str(key), number, last) for model, key, number, last in found]
