"""An organization's month so far: today, month to date, the same days of last month, a forecast."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from core.clock import day_of, hour_of, month_of, next_month
from usage.queries.periods import Bucket, Period, UsageQuery
from usage.queries.selection import Filters
from usage.queries.series import Point, costs, series

PACE_DAYS: Final = 7
"""How many whole days before today the forecast takes its pace from."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Spending:
    """Costs in one currency.

    ``before``: from the beginning of last month, as many whole hours as this month has lasted. ``forecast``:
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
    """Return the month at ``now`` (UTC) from the sums. Raises ``django.db.Error``."""
    today, month = day_of(now), month_of(now)
    before = month_of(month - _DAY)
    read = Period(min(month, today - PACE_DAYS * _DAY), today + _DAY)
    points = series(organization_id, UsageQuery(read, Filters(), Bucket.DAY, ()))
    # Whole hours, so that sums have all of them.
    elapsed = max(hour_of(now) - month, timedelta(hours=1))
    past = series(
        organization_id,
        UsageQuery(Period(before, min(before + elapsed, month)), Filters(), Bucket.DAY, ()),
    )
    in_month = [each for each in points if each.bucket_start >= month]
    in_today = [each for each in in_month if each.bucket_start == today]
    spent = {
        name: costs(each)
        for name, each in (("today", in_today), ("month", in_month), ("before", past))
    }
    paces = _paces([each for each in points if each.bucket_start < today], today)
    remaining = Decimal((next_month(month) - now) / _DAY)
    currencies = {name for each in spent.values() for name in each} or {default_currency}
    return MonthSoFar(
        requests_today=sum(each.requests for each in in_today),
        requests=sum(each.requests for each in in_month),
        requests_before=sum(each.requests for each in past),
        spendings=[
            Spending(
                currency,
                spent["today"].get(currency, Decimal(0)),
                month_cost := spent["month"].get(currency, Decimal(0)),
                spent["before"].get(currency, Decimal(0)),
                month_cost + paces[currency] * remaining if currency in paces else None,
            )
            for currency in sorted(currencies)
        ],
        points=points,
    )


def _paces(points: list[Point], today: datetime) -> dict[str, Decimal]:
    """The mean cost a day, by currency, of the last whole days since the first request in them."""
    recent = [each for each in points if each.bucket_start >= today - PACE_DAYS * _DAY]
    if not recent:
        return {}
    days = (today - min(each.bucket_start for each in recent)) // _DAY
    return {currency: cost / days for currency, cost in costs(recent).items()}
