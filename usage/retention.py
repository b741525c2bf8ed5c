"""What can still be asked of months whose rows were pruned."""

from __future__ import annotations

from datetime import datetime

from svc_project.lib.errors import InvalidQuery
from usage import days
from usage.models import PrunedMonth
from usage.partitions import next_month
from usage.periods import Period
from usage.sums import cut


def require_rows(period: Period) -> None:
    """Raises ``InvalidQuery`` when rows of ``period`` are in archives, and ``django.db.Error``."""
    bound = _rows_from()
    if bound is not None and period.start < bound:
        raise InvalidQuery(
            f"Rows before {bound:%Y-%m-%d} have been archived. Ask the operator for the archive, or "
            "begin later.",
            param="start",
        )


def require_sums(period: Period) -> None:
    """Raises ``InvalidQuery`` when ``period`` cuts an hour whose rows are in archives.

    Whole hours are summed for ever. Raises ``django.db.Error``.
    """
    edges = cut(period).edges
    bound = _rows_from() if edges else None
    if bound is not None and any(edge.start < bound for edge in edges):
        raise InvalidQuery(
            f"Before {bound:%Y-%m-%d} only whole hours can be summed: begin and end at a full hour.",
            param="start",
        )


def _rows_from() -> datetime | None:
    """The first moment from which no month was pruned; None when none was."""
    last = PrunedMonth.objects.order_by("-first").values_list("first", flat=True).first()
    return None if last is None else next_month(days.midnight(last))
