"""Wall time for rows, in whole milliseconds UTC; durations use the monotonic clock."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Wall time in UTC, cut to whole milliseconds: the precision that rows and exports have."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def hour_of(moment: datetime) -> datetime:
    """The start of the UTC hour of ``moment``."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def iso_milliseconds(moment: datetime) -> str:
    """``2026-11-20T10:17:20.123Z``: ISO 8601, UTC, milliseconds (inference contract, Usage)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
