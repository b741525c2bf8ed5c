"""Query parameters of the usage API: a period, filters and breakdowns, validated, in UTC.

Inference contract, "GET /v1/usage" (query parameters) and open points: unknown parameters are
ignored, the last of a repeated one counts, an empty one is absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from core import clock
from core.clock import month_of, next_month
from core.errors import InvalidQuery, PeriodInverted, PeriodTooLong
from usage.queries.selection import Filters, parse_filters

LONGEST = timedelta(days=93)
_DATE = re.compile(r"[0-9]{4}(-?)[0-9]{2}\1[0-9]{2}")
_CLOCK = re.compile(r"[0-9]{2}(?:(:?)[0-9]{2}(?:\1[0-9]{2}(?:[.,][0-9]{1,9})?)?)?")
_OFFSET = re.compile(r"(?:[Zz]|[+ -][0-9]{2}(?::?[0-9]{2})?)\Z")
_MIDNIGHT_AFTER = re.compile(r"24(?::?00(?::?00(?:[.,]0{1,9})?)?)?")
_DAY = timedelta(days=1)
_MILLISECOND = timedelta(milliseconds=1)


class Bucket(StrEnum):
    HOUR = "hour"
    DAY = "day"


class GroupBy(StrEnum):
    MODEL = "model"
    API_KEY = "api_key"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Period:
    """From ``start`` to ``end`` (exclusive); both UTC, in whole milliseconds."""

    start: datetime
    end: datetime

    def lookups(self, column: str) -> dict[str, datetime]:
        """The lookups of a query for rows whose ``column`` is in the period."""
        return {f"{column}__gte": self.start, f"{column}__lt": self.end}


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A validated summary query."""

    period: Period
    filters: Filters
    bucket: Bucket
    group_by: tuple[GroupBy, ...]


def parse_query(parameters: Mapping[str, str]) -> UsageQuery:
    """Parse the summary query in ``parameters``.

    Raises ``InvalidQuery`` with the parameter's name, ``PeriodInverted`` or ``PeriodTooLong``.
    """
    return UsageQuery(
        period=parse_period(parameters),
        filters=parse_filters(parameters),
        bucket=_bucket(parameters.get("bucket")),
        group_by=_group_by(parameters.get("group_by") or ""),
    )


def parse_period(parameters: Mapping[str, str]) -> Period:
    """Parse ``start`` and ``end``; by default the current UTC month. Raises as ``parse_query``."""
    month = month_of(clock.now())
    given_start, given_end = _moment(parameters, "start"), _moment(parameters, "end")
    start, end = given_start or month, given_end or next_month(month)
    defaults = _defaults_taken(start=None if given_start else start, end=None if given_end else end)
    if end <= start:
        raise PeriodInverted(
            f"'end' must be after 'start'; it is exclusive.{defaults}", param="end"
        )
    if end - start > LONGEST:
        raise PeriodTooLong(
            f"The period may span at most {LONGEST.days} days. Ask for a shorter one.{defaults}",
            param="end",
        )
    return Period(start, end)


def _defaults_taken(**taken: datetime | None) -> str:
    """A sentence that names the defaults used, for messages about wrong bounds."""
    return "".join(
        f" '{name}' was not sent; its default is {moment:%Y-%m-%d}."
        for name, moment in taken.items()
        if moment is not None
    )


def parse_moment(text: str) -> datetime:
    """Parse a timestamp or date; return it in UTC, rounded up to whole milliseconds.

    Calendar dates of ISO 8601, extended (``2026-11-01T10:00:00Z``) or basic (``20261101T100000Z``);
    ``24:00`` is the end of its day. Rows are on whole milliseconds, so rounding up selects the same
    rows. A naive timestamp means UTC. Raises ``ValueError``.
    """
    found = _DATE.match(text)
    if found is None:
        raise ValueError("not an ISO 8601 timestamp")
    date, rest = text[: found.end()], text[found.end() :]
    if not rest:
        return datetime.fromisoformat(date).replace(tzinfo=UTC)
    zone = _OFFSET.search(rest, 1)
    clock_text, offset = (rest[1 : zone.start()], zone[0]) if zone else (rest[1:], "Z")
    if rest[0] not in "Tt " or _CLOCK.fullmatch(clock_text) is None:
        raise ValueError("not an ISO 8601 timestamp")
    # A plus sign that was not percent-encoded arrives as a space.
    offset = offset.upper().replace(" ", "+")
    days = timedelta(0)
    if _MIDNIGHT_AFTER.fullmatch(clock_text):
        clock_text, days = "00:00", _DAY
    try:
        parsed = datetime.fromisoformat(f"{date}T{clock_text.replace(',', '.')}{offset}")
        parsed = (parsed + days).astimezone(UTC)
        finer = timedelta(microseconds=parsed.microsecond % 1000)
        # ``fromisoformat`` leaves out what is finer than a microsecond.
        below = clock_text.replace(",", ".").partition(".")[2][6:].strip("0")
        return parsed + (_MILLISECOND - finer if finer or below else timedelta(0))
    except OverflowError:
        raise ValueError("outside the years that a timestamp can have") from None


def _moment(parameters: Mapping[str, str], name: str) -> datetime | None:
    text = (parameters.get(name) or "").strip()
    if not text:
        return None
    try:
        return parse_moment(text)
    except ValueError:
        raise InvalidQuery(
            f"'{name}' must be an ISO 8601 timestamp such as 2026-11-01T00:00:00Z, or a date such "
            "as 2026-11-01.",
            param=name,
        ) from None


def _group_by(text: str) -> tuple[GroupBy, ...]:
    wanted = {part.strip() for part in text.split(",")} - {""} or {GroupBy.MODEL.value}
    if wanted - set(GroupBy):
        raise InvalidQuery(
            f"'group_by' takes {', '.join(GroupBy)}, separated by commas.", param="group_by"
        )
    return tuple(group for group in GroupBy if group.value in wanted)


def _bucket(text: str | None) -> Bucket:
    try:
        return Bucket(text) if text else Bucket.DAY
    except ValueError:
        raise InvalidQuery(
            f"'bucket' must be one of {', '.join(Bucket)}.", param="bucket"
        ) from None
