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
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)([Zz]|[+ -]\d{2}:?\d{2})?"
)
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
    start = _moment(parameters, "start") or month
    end = _moment(parameters, "end") or _next_month(month)
    if end <= start:
        raise PeriodInverted("'end' must be after 'start'; it is exclusive.", param="end")
    if end - start > LONGEST:
        raise PeriodTooLong(
            f"The period may span at most {LONGEST.days} days. Ask for a shorter one.", param="end"
        )
    return Period(start, end)


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

    Rows are on whole milliseconds, so a finer bound selects the same rows as that one. A naive
    timestamp means UTC. Raises ``ValueError``.
    """
    if _DATE.fullmatch(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if (found := _MOMENT.fullmatch(text)) is None:
        raise ValueError("not an ISO 8601 timestamp")
    moment, offset = found.groups()
    # A plus sign that was not percent-encoded arrives as a space.
    offset = (offset or "Z").upper().replace(" ", "+")
    try:
        parsed = datetime.fromisoformat(moment.replace(",", ".") + offset).astimezone(UTC)
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
