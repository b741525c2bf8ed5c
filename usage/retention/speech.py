"""Retention of speech: rows of whole months are deleted, without an archive; their sums stay.

``SpeechWatermark.pruned`` says before which moment an organization's sums stand alone: no upkeep, no
rebuilding and no trigger makes them again from rows there. It is set once they have all rows, and before
the first row is deleted, so another run continues after a crash.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Q

from core.clock import now
from usage.models import SpeechRow, SpeechWatermark
from usage.queries import speech_hours
from usage.retention.prune import oldest_kept

SLICE: Final = 5_000
"""Rows deleted per transaction."""


def prune_speech(keep: int) -> int:
    """Delete the rows that were settled before the last ``keep`` whole months; return how many.

    Raises ``django.db.Error``; another run continues.
    """
    before = oldest_kept(keep, now())
    speech_hours.sum_closed_hours(least=before)
    # Locks the watermarks, as a late row does: that row is summed, or its organization is left out.
    SpeechWatermark.objects.filter(Q(pruned=None) | Q(pruned__lt=before), until__gte=before).update(
        pruned=before
    )
    marked = SpeechWatermark.objects.filter(pruned__gte=before).values_list("pk", flat=True)
    return sum(_delete(organization_id, before) for organization_id in marked.order_by("pk"))


def _delete(organization_id: UUID, before: datetime) -> int:
    # A row of a later day, by a clock that was ahead, stays with the sum of its day.
    rows = SpeechRow.objects.filter(
        organization_id=organization_id, occurred_at__lt=before, day__lt=before.date()
    ).order_by("organization_id", "occurred_at")
    deleted = 0
    while found := list(rows.values_list("pk", flat=True)[:SLICE]):
        deleted += SpeechRow.objects.filter(pk__in=found).delete()[0]
    return deleted
