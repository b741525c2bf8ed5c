"""The time zone in which the console shows moments; days, downloads and the API stay UTC.

It is not Django's current time zone, because Django also truncates by that one in queries, and the
days of a page would become other days than those of the API.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

DEFAULT: Final = "UTC"
_REGIONS: Final = (
    "Africa/",
    "America/",
    "Antarctica/",
    "Arctic/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)

_shown: ContextVar[str] = ContextVar("display_zone", default=DEFAULT)


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    """The zones that people can choose: UTC, then those that this machine knows, by name."""
    return (DEFAULT, *sorted(name for name in available_timezones() if name.startswith(_REGIONS)))


@contextmanager
def showing(name: str) -> Iterator[None]:
    """Show moments in the zone ``name`` inside; in UTC when this machine does not know it."""
    token = _shown.set(DEFAULT if _zone(name) is None else name)
    try:
        yield
    finally:
        _shown.reset(token)


def shown_zone() -> str:
    """The name of the zone in which moments are shown now."""
    return _shown.get()


def localized(moment: datetime) -> datetime:
    """``moment`` in the shown zone; in UTC where the calendar has no such time, as in its last hours."""
    try:
        return moment.astimezone(_zone(_shown.get()))
    except OverflowError:
        return moment


@lru_cache(maxsize=1024)
def _zone(name: str) -> tzinfo | None:
    if name == DEFAULT:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):  # ValueError: the name is no path
        return None
