"""An organization's rows, newest first, as people look for them.

The export runs forward in time, for those who copy the ledger; this is the same index read
backwards, with the same cursors.
"""

from __future__ import annotations

from django.db.models import Q

from usage.cursors import Cursor
from usage.models import UsageRow
from usage.periods import Filters, Period


def newest(
    organization_id: str, period: Period, filters: Filters, limit: int, before: Cursor | None
) -> tuple[list[UsageRow], Cursor | None]:
    """At most ``limit`` rows of the period that come before ``before``, and where to go on.

    The cursor is ``None`` when no older row follows. Raises ``django.db.Error``.
    """
    rows = UsageRow.objects.filter(
        organization_id=organization_id,
        occurred_at__gte=period.start,
        occurred_at__lt=period.end,
    )
    if filters.model is not None:
        rows = rows.filter(model_identifier=filters.model)
    if filters.api_key_id is not None:
        rows = rows.filter(api_key_id=filters.api_key_id)
    if before is not None:
        # The first condition follows from the second; an index can use it.
        rows = rows.filter(occurred_at__lte=before.occurred_at).filter(
            Q(occurred_at__lt=before.occurred_at) | Q(request_id__lt=before.request_id)
        )
    found = list(rows.order_by("-occurred_at", "-request_id")[: limit + 1])
    if len(found) <= limit:
        return found, None
    del found[limit:]
    return found, Cursor(found[-1].occurred_at, found[-1].request_id)
