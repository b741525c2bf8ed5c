"""Where a reader of the console stands: the query string, its presets, and links that keep it.

The query string is the API's own (``start``, ``end``, ``model``, ``api_key_id``, ``bucket``), so a
page's address and the API call that gives the same answer differ by their path only.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from svc_project.lib import clock
from svc_project.lib.clock import iso_milliseconds
from usage.periods import Filters, Period

PARAMETERS = ("start", "end", "model", "api_key_id", "bucket", "metric")
_DAY = timedelta(days=1)


def bound_text(moment: datetime) -> str:
    """A bound of a period as short as the API takes it: a date when it is a day's beginning."""
    if moment == _day(moment):
        return moment.date().isoformat()
    return iso_milliseconds(moment)


@dataclass(frozen=True, slots=True)
class Place:
    """The parameters of a page that are set, by name."""

    parameters: Mapping[str, str]

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Place:
        return cls({name: query[name] for name in PARAMETERS if query.get(name)})

    def link(self, **changes: str | None) -> str:
        """The query string with ``changes``; ``None`` takes a parameter out."""
        kept = {**self.parameters, **changes}
        return "?" + urlencode({name: value for name, value in kept.items() if value})


@dataclass(frozen=True, slots=True)
class Preset:
    """A period by its name, as a link."""

    label: str
    link: str
    current: bool


def presets(place: Place, period: Period | None) -> list[Preset]:
    """The named periods; the one equal to ``period`` is current."""
    today = _day(clock.now())
    month = today.replace(day=1)
    next_month = (month + 31 * _DAY).replace(day=1)
    named = (
        ("This month", Period(month, next_month)),
        ("Last month", Period((month - _DAY).replace(day=1), month)),
        ("7 days", Period(today - 6 * _DAY, today + _DAY)),
        ("30 days", Period(today - 29 * _DAY, today + _DAY)),
    )
    return [
        Preset(
            label,
            # The API's default is the current month: a bookmark of it then moves with time.
            place.link(start=None, end=None)
            if each.start == month
            else place.link(start=bound_text(each.start), end=bound_text(each.end)),
            each == period,
        )
        for label, each in named
    ]


def period_text(period: Period) -> str:
    """``1 Nov 2026 to 30 Nov 2026`` for whole days, else both moments."""
    if period.start == _day(period.start) and period.end == _day(period.end):
        first, last = f"{period.start:%-d %b %Y}", f"{period.end - _DAY:%-d %b %Y}"
        return first if first == last else f"{first} to {last}"
    return f"{period.start:%-d %b %Y, %H:%M} to {period.end:%-d %b %Y, %H:%M}"


def api_query(period: Period, filters: Filters, **more: str) -> str:
    """The query string of the API for what a page shows, with the period written out."""
    named = {
        "start": bound_text(period.start),
        "end": bound_text(period.end),
        "model": filters.model,
        "api_key_id": filters.api_key_id,
        **more,
    }
    return urlencode({name: value for name, value in named.items() if value}, safe=",/:")


def curl(address: str) -> str:
    """A command for a shell that reads ``address`` with a key of scope read."""
    return f'curl {shlex.quote(address)} \\\n  -H "Authorization: Bearer $SVC_READ_KEY"'


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)
