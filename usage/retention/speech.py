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
from core.errors import InvalidQuery
from usage.models import SpeechRow, SpeechWatermark
from usage.queries import speech_hours
from usage.queries.periods import Period
from usage.queries.sources import cut
from usage.retention.prune import oldest_kept
from usage.retention.pruned_months import require_whole_hours

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


def require_speech_rows(organization_id: str, period: Period) -> None:
    """Raise ``InvalidQuery`` when speech rows of ``period`` are deleted. Raises ``django.db.Error``."""
    bound = _rows_from(organization_id)
    if bound is not None and period.start < bound:
        raise InvalidQuery(
            f"Rows of speech before {bound:%Y-%m-%d} have been deleted; their sums stay. Begin later.",
            param="start",
        )


def require_speech_sums(organization_id: str, period: Period) -> None:
    """Raise ``InvalidQuery`` when ``period`` begins or ends within an hour whose speech rows are deleted.

    Raises ``django.db.Error``.
    """
    if cut(period).edges:
        require_whole_hours(period, _rows_from(organization_id))


def _rows_from(organization_id: str) -> datetime | None:
    """The moment before which speech rows of the organization are deleted; None when none is."""
    return (
        SpeechWatermark.objects.filter(pk=organization_id).values_list("pruned", flat=True).first()
    )


def _delete(organization_id: UUID, before: datetime) -> int:
    # A row of a later day, by a clock that was ahead, stays with the sum of its day.
    rows = SpeechRow.objects.filter(
        organization_id=organization_id, occurred_at__lt=before, day__lt=before.date()
    ).order_by("organization_id", "occurred_at")
    deleted = 0
    while found := list(rows.values_list("pk", flat=True)[:SLICE]):
        deleted += SpeechRow.objects.filter(pk__in=found).delete()[0]
    return deleted
