"""Checks whether a period can be answered although months were pruned."""

from __future__ import annotations

from datetime import datetime

from core.clock import midnight, next_month
from core.errors import InvalidQuery
from usage.models import PrunedMonth
from usage.queries.periods import Period
from usage.queries.sources import cut


def archived_before(period: Period) -> datetime | None:
    """The moment before which rows are archived; None when no row of ``period`` is.

    Raises ``django.db.Error``.
    """
    bound = _rows_from()
    return bound if bound is not None and period.start < bound else None


def require_rows(period: Period) -> None:
    """Raise ``InvalidQuery`` when rows of ``period`` are archived. Raises ``django.db.Error``."""
    bound = archived_before(period)
    if bound is not None:
        raise InvalidQuery(
            f"Rows before {bound:%Y-%m-%d} have been archived. Ask the operator for the archive, or "
            "begin later.",
            param="start",
        )


def require_sums(period: Period) -> None:
    """Raise ``InvalidQuery`` when ``period`` begins or ends within an hour whose rows are archived.

    The sums of whole hours stay. Raises ``django.db.Error``.
    """
    if cut(period).edges:
        require_whole_hours(period, _rows_from())


def require_whole_hours(period: Period, bound: datetime | None) -> None:
    """Raise ``InvalidQuery`` when ``period`` begins or ends within an hour before ``bound``."""
    if bound is not None and any(edge.start < bound for edge in cut(period).edges):
        raise InvalidQuery(
            f"Before {bound:%Y-%m-%d} only whole hours can be summed: begin and end at a full hour.",
            param="start",
        )


def _rows_from() -> datetime | None:
    """The moment from which no month is pruned; None when no month is."""
    last = PrunedMonth.objects.order_by("-first").values_list("first", flat=True).first()
    return None if last is None else next_month(midnight(last))
