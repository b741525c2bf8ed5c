"""The console's first page: what today and this month cost, how requests go, what needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from accounts.console.first_request import FirstRequest, first_request
from accounts.console.snippets import KEY_VARIABLE
from accounts.models import ApiKey, Scope
from inference.catalog.catalog import catalog
from inference.console.endings import CALLED_DAYS, endings
from inference.console.limits import limit_lines
from svc_project.lib import clock
from usage.api import throttles
from usage.console.charts import Chart, Metric, stacked
from usage.console.query_string import bound_text
from usage.console.speech_card import speech_card
from usage.models import SpeechDay, UsageRollup
from usage.queries.overviews.health import MOST_ROWS, sample
from usage.queries.overviews.month import PACE_DAYS, MonthSoFar, month_so_far
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters

HEALTH_HOURS: Final = 24
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Steps:
    """The way to the first request: what has been done, and code for the rest."""

    has_key: bool
    has_sent: bool
    requests: list[FirstRequest]


class OverviewPage(ConsoleView):
    """Today and the month, failures and latency of a day, limits, ending models, first steps."""

    section = "overview"

    def get(self, request: HttpRequest) -> HttpResponse:
        now = clock.now()
        organization_id = str(self.organization.pk)
        models = catalog.current().models
        month = month_so_far(organization_id, now, settings.SVC_DEFAULT_CURRENCY)
        day = Period(now - timedelta(hours=HEALTH_HOURS), now)
        newest = sample(organization_id, day)
        steps = self._steps()
        return self.page(
            "console/overview.html",
            now=now,
            month=month,
            places=_places(month),
            pace_days=PACE_DAYS,
            chart=_chart(month, now),
            health=newest.health(),
            most_rows=MOST_ROWS,
            failures_link=f"?outcome=failed&start={bound_text(day.start)}&end={bound_text(day.end)}",
            limits=limit_lines(self.organization, models, newest),
            throttled=throttles.read(organization_id, day, Filters()),
            speech=speech_card(self.organization),
            endings=endings(self.organization, models, now),
            called_days=CALLED_DAYS,
            steps=steps,
            variable=KEY_VARIABLE,
        )

    def _steps(self) -> Steps:
        scopes = (Scope.INFERENCE, Scope.SPEECH)
        codes = [first_request(self.request, self.organization, scope) for scope in scopes]
        own = {"organization_id": self.organization.pk}
        return Steps(
            has_key=ApiKey.objects.filter(**own, revoked_at=None).exists(),
            has_sent=UsageRollup.objects.filter(**own).exists()
            or SpeechDay.objects.filter(**own).exists(),
            requests=[each for each in codes if each is not None],
        )


def _places(month: MonthSoFar) -> int:
    """How many decimals the page's costs are rounded to."""
    return 2 if any(each.month >= 1 or each.before >= 1 for each in month.spendings) else 6


def _chart(month: MonthSoFar, now: datetime) -> Chart | None:
    """Cost by day of this month; requests where costs are in several currencies."""
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    points = [each for each in month.points if each.bucket_start >= first]
    if not points:
        return None
    last = (first + 31 * _DAY).replace(day=1)
    is_cost = len({each.currency for each in points}) == 1 and _has_cost(month)
    metric = Metric.COST if is_cost else Metric.REQUESTS
    unit = points[0].currency if is_cost else metric.value
    return stacked(points, Period(first, last), Bucket.DAY, metric, unit)


def _has_cost(month: MonthSoFar) -> bool:
    costs: Sequence[Decimal] = [each.month for each in month.spendings]
    return any(costs)
