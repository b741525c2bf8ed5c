"""What a caller asks of the ledger: a period, filters, breakdowns; checked, in UTC.

Inference contract, "GET /v1/usage" (query parameters) and open points: an unknown parameter is
ignored, a repeated one takes the last, an empty one is absent.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from svc_project.lib import clock
from svc_project.lib.errors import InvalidQuery, PeriodInverted, PeriodTooLong

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
class Filters:
    """Which rows of an organization: None is all of them. ``api_key_id`` is a UUID text."""

    model: str | None = None
    api_key_id: str | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """From ``start`` up to, and without, ``end``; both UTC, on whole milliseconds."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A checked summary query."""

    period: Period
    filters: Filters
    bucket: Bucket
    group_by: tuple[GroupBy, ...]


def parse_query(parameters: Mapping[str, str]) -> UsageQuery:
    """The summary query in ``parameters``.

    Raises ``InvalidQuery`` with the parameter's name, ``PeriodInverted`` or ``PeriodTooLong``.
    """
    return UsageQuery(
        period=parse_period(parameters),
        filters=parse_filters(parameters),
        bucket=_bucket(parameters.get("bucket")),
        group_by=_group_by(parameters.get("group_by") or ""),
    )


def parse_period(parameters: Mapping[str, str]) -> Period:
    """``start`` and ``end``; by default the current UTC month. Raises as ``parse_query``."""
    month = clock.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    given_start, given_end = _moment(parameters, "start"), _moment(parameters, "end")
    start, end = given_start or month, given_end or _next_month(month)
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
    """Which bound was not sent, for a caller who is told that it is wrong."""
    return "".join(
        f" '{name}' was not sent; its default is {moment:%Y-%m-%d}."
        for name, moment in taken.items()
        if moment is not None
    )


def parse_filters(parameters: Mapping[str, str]) -> Filters:
    """``model`` and ``api_key_id``. Raises ``InvalidQuery``."""
    model = parameters.get("model") or None
    if model is not None and not model.isprintable():
        raise InvalidQuery("'model' must be a model identifier.", param="model")
    key = parameters.get("api_key_id") or None
    if key is not None:
        try:
            key = str(uuid.UUID(key))
        except ValueError:
            raise InvalidQuery(
                "'api_key_id' must be a UUID: the key's id, not its prefix.", param="api_key_id"
            ) from None
    return Filters(model, key)


def parse_moment(text: str) -> datetime:
    """The timestamp or date in ``text``, in UTC, raised to the next whole millisecond.

    Calendar dates of ISO 8601, extended (``2026-11-01T10:00:00Z``) or basic (``20261101T100000Z``);
    ``24:00`` is the end of its day. Rows are on whole milliseconds, so a finer bound selects the same
    rows as that one. A naive timestamp means UTC. Raises ``ValueError``.
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
        finer = parsed.microsecond % 1000
        return parsed + (_MILLISECOND - timedelta(microseconds=finer) if finer else timedelta(0))
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


def _next_month(first: datetime) -> datetime:
    return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)


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
