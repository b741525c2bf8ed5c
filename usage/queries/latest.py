"""An organization's rows, newest first, for the console.

The export runs forward in time, for programs that copy the ledger; this reads the same index
backwards, with the same cursors. A filter that no index serves searches a bounded number of rows at
a time, so no page takes longer than another, however rare the rows are that it looks for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from django.db.models import Q, QuerySet

from usage.models import Refusal, SpeechRow, UsageRow
from usage.queries.cursors import Cursor
from usage.queries.periods import Period
from usage.queries.selection import Filters, columns

MOST_SEARCHED: Final = 50_000
"""How many rows a filter without an index searches at most."""

_BEFORE_ALL_IDS: Final = "!"
"""Sorts before every request id."""

Row = TypeVar("Row", UsageRow, SpeechRow, Refusal)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows, newest first, and where the next page begins; None when no older row follows.

    ``searched_to``: older rows than of this time were not searched.
    """

    rows: list[Row]
    older: Cursor | None
    searched_to: datetime | None = None


def of_period(
    model: type[Row], organization_id: str, period: Period, filters: Filters
) -> QuerySet[Row]:
    """The organization's rows of ``period``, by ``filters.api_key_id``: speech has no model."""
    key = Filters(api_key_id=filters.api_key_id)
    rows: QuerySet[Row] = model._default_manager.filter(
        **columns(organization_id, key), **period.lookups("occurred_at")
    )
    return rows


def newest(
    rows: QuerySet[Row],
    limit: int,
    before: Cursor | None,
    chosen: Callable[[QuerySet[Row]], QuerySet[Row]] | None = None,
) -> Page[Row]:
    """Return at most ``limit`` of ``rows`` that come before ``before``.

    ``rows`` are those of ``of_period``. ``chosen`` applies the filters that no index serves. Raises
    ``django.db.Error``.
    """
    if before is not None:
        # The first condition is redundant; an index can use it.
        rows = rows.filter(occurred_at__lte=before.occurred_at).filter(
            Q(occurred_at__lt=before.occurred_at) | Q(request_id__lt=before.request_id)
        )
    reached = None
    if chosen is not None:
        reached = time_reached(rows)
        if reached is not None:
            rows = rows.filter(occurred_at__gte=reached)
        rows = chosen(rows)
    found = list(rows.order_by("-occurred_at", "-request_id")[: limit + 1])
    if len(found) > limit:
        del found[limit:]
        return Page(found, Cursor(found[-1].occurred_at, found[-1].request_id))
    if reached is not None:
        return Page(found, Cursor(reached, _BEFORE_ALL_IDS), reached)
    return Page(found, None)


def newer(rows: QuerySet[Row], after: Cursor) -> QuerySet[Row]:
    """Those of ``rows`` that come after ``after``."""
    # The first condition is redundant; an index can use it.
    return rows.filter(occurred_at__gte=after.occurred_at).filter(
        Q(occurred_at__gt=after.occurred_at) | Q(request_id__gt=after.request_id)
    )


def before_all_at(moment: datetime) -> Cursor:
    """The position before all rows of ``moment``."""
    return Cursor(moment, _BEFORE_ALL_IDS)


def time_reached(rows: QuerySet[Any]) -> datetime | None:
    """The time of the row after the newest ``MOST_SEARCHED`` of ``rows``; None when there are fewer.

    Raises ``django.db.Error``.
    """
    times = rows.order_by("-occurred_at", "-request_id").values_list("occurred_at", flat=True)
    return next(iter(times[MOST_SEARCHED : MOST_SEARCHED + 1]), None)
