"""The query string of the console's pages, its presets, and links that keep it.

It is the API's own (``start``, ``end``, ``model``, ``api_key_id``, ``bucket``), so a page and the API
call that gives the same answer differ in their path only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final
from urllib.parse import urlencode

from core import clock
from core.clock import day_of, iso_milliseconds, month_of, next_month
from usage.console import request_filters
from usage.queries.periods import Period
from usage.queries.selection import Filters

PARAMETERS = (
    *("start", "end", "model", "api_key_id", "bucket", "metric", "by", "sort", "surface", "error"),
    *request_filters.NAMES,
)
SPEECH: Final = "speech"
"""The value of ``surface`` for speech instead of chats."""

_DAY = timedelta(days=1)


def bound_text(moment: datetime) -> str:
    """A bound of a period in its shortest form: a date when it is midnight."""
    if moment == day_of(moment):
        return moment.date().isoformat()
    return iso_milliseconds(moment)


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The parameters of a page that are set, by name."""

    parameters: Mapping[str, str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> PageQuery:
        """The parameters of ``query``; ``until``, the last day, becomes the API's exclusive ``end``."""
        found = {name: query[name] for name in PARAMETERS if query.get(name)}
        if until := query.get("until"):
            found["end"] = _day_after(until)
        return cls(found)

    def link(self, **changes: str | None) -> str:
        """The query string with ``changes``; ``None`` removes a parameter."""
        kept = {**self.parameters, **changes}
        return "?" + urlencode({name: value for name, value in kept.items() if value})


def _day_after(day: str) -> str:
    """The day after ``day``, or ``day`` itself, for the API to refuse, when it is no day."""
    try:
        return (date.fromisoformat(day) + _DAY).isoformat()
    except (ValueError, OverflowError):
        return day


def last_day_text(end: str) -> str:
    """The last day before the exclusive ``end``, if that is a day; else ``end`` itself."""
    try:
        return (date.fromisoformat(end) - _DAY).isoformat()
    except (ValueError, OverflowError):
        return end


@dataclass(frozen=True, slots=True)
class Preset:
    """A named period, as a link."""

    label: str
    link: str
    current: bool


def presets(page_query: PageQuery, period: Period | None) -> list[Preset]:
    """The named periods; the one equal to ``period`` is current."""
    today = day_of(clock.now())
    month = month_of(today)
    named = (
        ("Today", Period(today, today + _DAY)),
        ("Yesterday", Period(today - _DAY, today)),
        ("7 days", Period(today - 6 * _DAY, today + _DAY)),
        ("30 days", Period(today - 29 * _DAY, today + _DAY)),
        ("90 days", Period(today - 89 * _DAY, today + _DAY)),
        ("This month", Period(month, next_month(month))),
        ("Last month", Period(month_of(month - _DAY), month)),
    )
    return [
        Preset(
            label,
            # The API's default is the current month, so a bookmark of it stays current.
            page_query.link(start=None, end=None)
            if label == "This month"
            else page_query.link(start=bound_text(each.start), end=bound_text(each.end)),
            each == period,
        )
        for label, each in named
    ]


def period_text(period: Period) -> str:
    """``1 Nov 2026 to 30 Nov 2026`` for whole days, else both moments."""
    if period.start == day_of(period.start) and period.end == day_of(period.end):
        first, last = f"{period.start:%-d %b %Y}", f"{period.end - _DAY:%-d %b %Y}"
        return first if first == last else f"{first} to {last}"
    return f"{period.start:%-d %b %Y, %H:%M} to {period.end:%-d %b %Y, %H:%M}"


def api_query(period: Period, filters: Filters, **more: str) -> str:
    """The API's query string for the content of a page, with an explicit period."""
    named = {
        "start": bound_text(period.start),
        "end": bound_text(period.end),
        "model": filters.model,
        "api_key_id": filters.api_key_id,
        **more,
    }
    return urlencode({name: value for name, value in named.items() if value}, safe=",/:")


def curl(address: str) -> str:
    """A shell command that reads ``address`` with an API key of scope read."""
    return f'curl {shlex.quote(address)} \\\n  -H "Authorization: Bearer $SVC_READ_KEY"'
