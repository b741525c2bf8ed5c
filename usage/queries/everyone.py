"""Usage of all organizations, for operators: sums of periods, and how requests ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from core.money import sum_costs
from usage.models import SpeechDay, ThrottleCount, UsageRollup
from usage.models.health_sums import OUTCOME_SUMS
from usage.queries.health import UNFAILED
from usage.queries.outcomes import FIGURES, Endings
from usage.queries.periods import Bucket, Period
from usage.queries.selection import owners
from usage.queries.sources import moment_of, read, sum_of, uuid_text
from usage.queries.sums import Total, total_of

_MOST_NAMED: Final = 5_000
"""Organizations that a query names at most, to read its part of each one's roll-ups by their key;
with more of them the database reads all roll-ups of the period."""


_ROLLUPS: Final = UsageRollup._meta.db_table
_ID: Final = UsageRollup._meta.get_field("organization_id")
_ENDED: Final = " + ".join(OUTCOME_SUMS.values())
_FAILED: Final = " + ".join(
    column for outcome, column in OUTCOME_SUMS.items() if outcome not in UNFAILED
)
_STAMP: Final = ("price_currency", "input_price_per_mtok", "output_price_per_mtok")
_READ_AND_WRITTEN: Final = ("backend_reported_input_tokens", "backend_reported_output_tokens")
_DAY: Final = {
    "postgresql": "(hour AT TIME ZONE 'UTC')::date::text",
    "sqlite": "substr(hour, 1, 10)",
}
_LAST: Final = {
    "postgresql": "extract(epoch FROM max(hour))::bigint",
    "sqlite": "substr(max(hour), 1, 13)",
}
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class By(StrEnum):
    """What sums are grouped by."""

    ORGANIZATION = "organization"
    MODEL = "model"
    API_KEY = "key"
    DAY = "day"


_COLUMNS: Final[Mapping[By, str]] = {
    By.ORGANIZATION: "organization_id",
    By.MODEL: "model_identifier",
    By.API_KEY: "api_key_id",
    By.DAY: "day",
}


@dataclass(slots=True)
class Entry:
    """The sums of one group in one currency; the cost is exact."""

    key: tuple[str, ...]
    """The group's value for each ``By``: ids and names as text, days as ``2026-11-20``."""
    currency: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)
    failed: int = 0
    unknown: int = 0
    """Requests whose outcome upkeep has not added to the sums yet."""
    last_hour: datetime = _NEVER
    """The hour of its last request."""


def sums(
    period: Period,
    by: tuple[By, ...],
    *,
    organization_id: str | None = None,
    model_id: str | None = None,
) -> list[Entry]:
    """Return the sums of whole hours in ``period``, dearest first.

    The roll-ups are written with the rows, so the sums are exact. Raises ``django.db.Error``.
    """
    chosen = {"hour >= %s": period.start, "hour < %s": period.end, **_of(organization_id)}
    if model_id is not None:
        chosen["model_id = %s"] = UUID(model_id)
    columns = [_COLUMNS[each] for each in by]
    parts: dict[tuple[Any, ...], Total] = {}
    last: dict[tuple[Any, ...], datetime] = {}
    for *row, hour in _added_up(
        [*map(_read, columns), *_STAMP],
        ["requests", *_READ_AND_WRITTEN, _FAILED, _ENDED],
        chosen,
        _LAST[connection.vendor],
    ):
        key, part = tuple(row[: len(by) + 1]), total_of(*row[len(by) :])
        parts[key] = parts[key] + part if key in parts else part
        last[key] = max(last.get(key, _NEVER), moment_of(hour, Bucket.HOUR))
    return sorted(
        (
            _entry(tuple(map(_text, columns, key[:-1])), part, last[key])  # without the currency
            for key, part in parts.items()
        ),
        key=lambda entry: (-entry.cost, entry.key),
    )


def _entry(key: tuple[str, ...], part: Total, last_hour: datetime) -> Entry:
    read, written, failed, ended = part.figures
    unknown = max(0, part.requests - ended)
    return Entry(
        key, part.currency, part.requests, read, written, part.cost, failed, unknown, last_hour
    )


def _read(column: str) -> str:
    return _DAY[connection.vendor] if column == "day" else read(column)


def _text(column: str, value: str) -> str:
    return uuid_text(value) if column.endswith("_id") else value


def _added_up(
    columns: Sequence[str],
    figures: Sequence[str],
    chosen: Mapping[str, Any],
    *more: str,
    since: datetime | None = None,
) -> list[tuple[Any, ...]]:
    """Return the sums ``figures`` of roll-ups by ``columns``, all of them SQL, and ``more`` aggregates.

    ``chosen``: conditions of the roll-ups, each with the parameter, or the list of parameters, of its
    placeholders; ``since`` is that of a placeholder in ``columns``. In SQL, because the ORM takes 2 to 4 ms
    of processor time to build such a statement.
    """
    numbers = ", ".join(str(number) for number in range(1, len(columns) + 1))
    found = ", ".join([*columns, *map(sum_of, figures), *more])
    parameters: list[Any] = [] if since is None else [_adapt(since)]
    for value in chosen.values():
        parameters += map(_adapt, value if isinstance(value, list) else [value])
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {found} FROM {_ROLLUPS} WHERE {' AND '.join(chosen)}"  # noqa: S608  # names are ours
            f"{f' GROUP BY {numbers}' if columns else ''}",
            parameters,
        )
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _adapt(value: Any) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return _ID.get_db_prep_value(value, connection)


def _of(organization_id: str | None) -> dict[str, Any]:
    """Limit roll-ups to an organization, or name all, so that the key's index is used."""
    named = owners(_MOST_NAMED) if organization_id is None else [organization_id]
    if named is None:
        return {}
    return {f"organization_id IN ({', '.join(['%s'] * len(named)) or 'NULL'})": named}


@dataclass(frozen=True, slots=True)
class Speech:
    """Speech of one group: characters charged, and audio sent, in milliseconds."""

    requests: int
    characters: int
    audio_ms: int


def spoken(
    period: Period, by: tuple[By, ...], *, organization_id: str | None = None
) -> dict[tuple[str, ...], Speech]:
    """Return the speech of the whole days in ``period``, by the key that ``sums`` gives its group.

    ``by`` has organizations and days only: the sums of days have neither model nor key. Raises
    ``django.db.Error``.
    """
    days = SpeechDay.objects.filter(day__gte=period.start.date(), day__lt=period.end.date())
    if organization_id is not None:
        days = days.filter(organization_id=organization_id)
    columns = [_COLUMNS[each] for each in by]
    found = (
        days.values(*columns)
        .order_by()
        .annotate(count=Sum("requests"), charged=Sum("characters"), sent=Sum("audio_ms"))
    )
    return {
        tuple(str(row[column]) for column in columns): Speech(
            row["count"], row["charged"], row["sent"]
        )
        for row in found
        if row["count"]
    }


def totals(entries: Iterable[Entry]) -> list[Entry]:
    """Return the sum of ``entries`` in each currency."""
    found: dict[str, Entry] = {}
    for entry in entries:
        whole = found.setdefault(entry.currency, Entry((), entry.currency))
        whole.requests += entry.requests
        whole.input_tokens += entry.input_tokens
        whole.output_tokens += entry.output_tokens
        whole.failed += entry.failed
        whole.unknown += entry.unknown
        whole.last_hour = max(whole.last_hour, entry.last_hour)
        whole.cost = sum_costs((whole.cost, entry.cost))
    return [found[currency] for currency in sorted(found)]


def endings_since(hour: datetime) -> Endings:
    """How the requests that ended from ``hour`` on ended. Raises ``django.db.Error``."""
    (found,) = _added_up((), FIGURES, {"hour >= %s": hour, **_of(None)})
    return Endings(tuple(int(each or 0) for each in found))


@dataclass(frozen=True, slots=True)
class Failed:
    """How many requests of an organization ended, and failed, in two parts of a period."""

    requests: int
    failed: int
    requests_before: int
    failed_before: int
    unknown: int
    """Requests of both parts whose outcome upkeep has not added to the sums yet."""


def failed_of_each(before: datetime, since: datetime) -> dict[str, Failed]:
    """Count by organization the requests that ended from the hour ``before`` to ``since``, and later.

    Raises ``django.db.Error``.
    """
    chosen = {"hour >= %s": before, **_of(None)}
    columns = [read("organization_id"), "CASE WHEN hour >= %s THEN 1 ELSE 0 END"]
    figures = (_ENDED, _FAILED, f"requests - ({_ENDED})")
    found: defaultdict[str, list[tuple[int, ...]]] = defaultdict(lambda: [(0, 0, 0)] * 2)
    for owner, is_late, *sums in _added_up(columns, figures, chosen, since=since):
        found[uuid_text(owner)][is_late] = tuple(sums)
    return {
        owner: Failed(late[0], late[1], early[0], early[1], late[2] + early[2])
        for owner, (early, late) in found.items()
    }


def throttled(since: datetime) -> int:
    """Requests that limits refused from the hour of ``since`` on. Raises ``django.db.Error``."""
    found = ThrottleCount.objects.filter(hour__gte=since).aggregate(all=Sum("count"))
    return int(found["all"] or 0)
