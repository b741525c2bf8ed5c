"""Comparison of this host's clock with the database's.

On PostgreSQL the database's clock stamps rows; the host's decides limits, days, prices and ids.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Final

from django.db import connection

from core.clock import now

LARGEST_DIFFERENCE: Final = 1.0
"""Seconds; more than that is reported."""


def clock_difference() -> float | None:
    """Return how many seconds this host's clock is ahead of the database's; negative: behind.

    It is the least difference that the time of the query allows for, so a slow network or a busy
    process is not taken for a difference. None on SQLite, which has no clock of its own. Raises
    ``django.db.Error``.
    """
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        earliest, began = now(), time.perf_counter()
        cursor.execute("SELECT clock_timestamp()")
        theirs: datetime = cursor.fetchone()[0]
        took = time.perf_counter() - began
    # Our clock was between `earliest` and `took` later when the database read its own.
    ahead = (earliest - theirs).total_seconds()
    if ahead > 0:
        return ahead
    return min(0.0, ahead + took)
