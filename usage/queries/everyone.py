"""Usage of all organizations, for operators: sums of periods, and how requests ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from operator import add
from typing import Any, Final

from django.db.models import F, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from core.money import price_units, sum_costs
from usage.models import SpeechDay, ThrottleCount, UsageRollup
from usage.models.health_sums import OUTCOME_SUMS
from usage.queries.health import UNFAILED
from usage.queries.outcomes import FIGURES, Endings
from usage.queries.periods import Period
from usage.queries.selection import owners
from usage.queries.sums import PricedSum, add_up

_MOST_NAMED: Final = 5_000
"""Organizations that a query names at most, to read its part of each one's roll-ups by their key;
with more of them the database reads all roll-ups of the period."""


_ENDED: Final = reduce(add, map(F, OUTCOME_SUMS.values()))
_FAILED: Final = reduce(
    add, (F(column) for outcome, column in OUTCOME_SUMS.items() if outcome not in UNFAILED)
)
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
    rows = UsageRollup.objects.filter(hour__gte=period.start, hour__lt=period.end)
    rows = _of(rows, organization_id)
    if model_id is not None:
        rows = rows.filter(model_id=model_id)
    if By.DAY in by:
        rows = rows.annotate(day=TruncDate("hour", tzinfo=UTC))
    columns = [_COLUMNS[each] for each in by]
    stamp = ("price_currency", "input_price_per_mtok", "output_price_per_mtok")
    parts: defaultdict[tuple[str, ...], list[PricedSum]] = defaultdict(list)
    last: dict[tuple[str, ...], datetime] = {}
    for row in (
        rows.values(*columns, *stamp)
        .order_by()
        .annotate(
            count=Sum("requests"),
            read=Sum("backend_reported_input_tokens"),
            written=Sum("backend_reported_output_tokens"),
            failed=Sum(_FAILED),
            ended=Sum(_ENDED),
            last=Max("hour"),
        )
    ):
        key = (*(str(row[column]) for column in columns), row["price_currency"])
        parts[key].append(_priced_sum(row))
        last[key] = max(last.get(key, _NEVER), row["last"])
    return sorted(_entries(parts, last), key=lambda entry: (-entry.cost, entry.key))


def _entries(
    parts: Mapping[tuple[str, ...], list[PricedSum]], last: Mapping[tuple[str, ...], datetime]
) -> Iterator[Entry]:
    """Yield the entry of each key and currency, whose last hour is in ``last``."""
    for key, group in parts.items():
        for each in add_up(group):
            read, written, failed, ended = each.figures
            yield Entry(
                key[:-1],
                each.currency,
                each.requests,
                read,
                written,
                each.cost,
                failed,
                max(0, each.requests - ended),
                last[key],
            )


def _of(rows: QuerySet[UsageRollup], organization_id: str | None) -> QuerySet[UsageRollup]:
    """Limit ``rows`` to an organization, or name all, so that the key's index is used."""
    if organization_id is not None:
        return rows.filter(organization_id=organization_id)
    named = owners(_MOST_NAMED)
    return rows if named is None else rows.filter(organization_id__in=named)


def _priced_sum(row: Mapping[str, Any]) -> PricedSum:
    return PricedSum(
        row["price_currency"],
        price_units(row["input_price_per_mtok"]),
        price_units(row["output_price_per_mtok"]),
        row["count"],
        (row["read"], row["written"], row["failed"], row["ended"]),
    )


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
    rows = _of(UsageRollup.objects.filter(hour__gte=hour), None)
    found = rows.aggregate(**{f"sum_{name}": Sum(name) for name in FIGURES})
    return Endings(tuple(int(found[f"sum_{name}"] or 0) for name in FIGURES))


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
    rows = _of(UsageRollup.objects.filter(hour__gte=before), None)
    late, early = Q(hour__gte=since), Q(hour__lt=since)
    found = (
        rows.values_list("organization_id")
        .order_by()
        .annotate(
            late_ended=Sum(_ENDED, filter=late, default=0),
            late_failed=Sum(_FAILED, filter=late, default=0),
            early_ended=Sum(_ENDED, filter=early, default=0),
            early_failed=Sum(_FAILED, filter=early, default=0),
            unknown=Sum(F("requests") - _ENDED),
        )
    )
    return {str(owner): Failed(*map(int, numbers)) for owner, *numbers in found}


def throttled(since: datetime) -> int:
    """Requests that limits refused from the hour of ``since`` on. Raises ``django.db.Error``."""
    found = ThrottleCount.objects.filter(hour__gte=since).aggregate(all=Sum("count"))
    return int(found["all"] or 0)
