"""Wall time for rows, in whole milliseconds UTC; durations use the monotonic clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time


def now() -> datetime:
    """Wall time in UTC, cut to whole milliseconds: the precision that rows and exports have."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def hour_of(moment: datetime) -> datetime:
    """The start of the UTC hour of ``moment``."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    """The start of the UTC day of ``moment``."""
    return hour_of(moment).replace(hour=0)


def month_of(moment: datetime) -> datetime:
    """The start of the UTC month of ``moment``."""
    return day_of(moment).replace(day=1)


def next_month(first: datetime) -> datetime:
    """The first moment of the month after the one that begins with ``first``."""
    return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)


def midnight(day: date) -> datetime:
    """The first moment of a UTC day."""
    return datetime.combine(day, time.min, UTC)


def iso_milliseconds(moment: datetime) -> str:
    """``2026-11-20T10:17:20.123Z``: ISO 8601, UTC, milliseconds (inference contract, Usage)."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
