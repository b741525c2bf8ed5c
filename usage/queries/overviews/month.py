"""An organization's month so far: today, month to date, the same days of last month, a forecast."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from usage.queries.periods import Bucket, Period, UsageQuery
from usage.queries.selection import Filters
from usage.queries.series import Point, series

PACE_DAYS: Final = 7
"""How many whole days before today the forecast takes its pace from."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Spending:
    """Costs in one currency.

    ``before``: from the beginning of last month, as long as this month has lasted. ``forecast``:
    the month to date, and the pace of the last ``PACE_DAYS`` whole days for the rest of the month;
    None before there was a whole day with requests.
    """

    currency: str
    today: Decimal
    month: Decimal
    before: Decimal
    forecast: Decimal | None

    @property
    def change_percent(self) -> int | None:
        """How much more than ``before`` the month to date is; None when there was nothing."""
        return round(100 * (self.month / self.before - 1)) if self.before else None

    @property
    def less_percent(self) -> int:
        return -(self.change_percent or 0)


@dataclass(frozen=True, slots=True)
class MonthSoFar:
    requests_today: int
    requests: int
    requests_before: int
    spendings: list[Spending]
    points: list[Point]
    """By day and model, of the month and of the days that the pace comes from."""


def month_so_far(organization_id: str, now: datetime, default_currency: str) -> MonthSoFar:
    """Return the figures at ``now`` (UTC) from the sums. Raises ``django.db.Error``."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = today.replace(day=1)
    before = (month - _DAY).replace(day=1)
    read = Period(min(month, today - PACE_DAYS * _DAY), today + _DAY)
    points = series(organization_id, UsageQuery(read, Filters(), Bucket.DAY, ()))
    elapsed = max(now - month, timedelta(hours=1))
    past = series(
        organization_id,
        UsageQuery(Period(before, min(before + elapsed, month)), Filters(), Bucket.DAY, ()),
    )
    in_month = [each for each in points if each.bucket_start >= month]
    in_today = [each for each in in_month if each.bucket_start == today]
    costs = {
        name: _by_currency(each)
        for name, each in (("today", in_today), ("month", in_month), ("before", past))
    }
    paces = _paces([each for each in points if each.bucket_start < today], today)
    remaining = Decimal((_next_month(month) - now) / _DAY)
    currencies = {name for each in costs.values() for name in each} or {default_currency}
    return MonthSoFar(
        requests_today=sum(each.requests for each in in_today),
        requests=sum(each.requests for each in in_month),
        requests_before=sum(each.requests for each in past),
        spendings=[
            Spending(
                currency,
                costs["today"].get(currency, Decimal(0)),
                spent := costs["month"].get(currency, Decimal(0)),
                costs["before"].get(currency, Decimal(0)),
                spent + paces[currency] * remaining if currency in paces else None,
            )
            for currency in sorted(currencies)
        ],
        points=points,
    )


def _by_currency(points: Iterable[Point]) -> dict[str, Decimal]:
    sums: defaultdict[str, Decimal] = defaultdict(Decimal)
    for each in points:
        sums[each.currency] += each.cost
    return sums


def _paces(points: list[Point], today: datetime) -> dict[str, Decimal]:
    """The mean cost a day, by currency, of the last whole days since the first request in them."""
    recent = [each for each in points if each.bucket_start >= today - PACE_DAYS * _DAY]
    if not recent:
        return {}
    days = (today - min(each.bucket_start for each in recent)) // _DAY
    return {currency: cost / days for currency, cost in _by_currency(recent).items()}


def _next_month(month: datetime) -> datetime:
    return (month + 31 * _DAY).replace(day=1)
