"""The console's first page: what today and this month cost, how requests go, what needs attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Final

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from accounts.console.first_request import FirstRequest, first_request
from accounts.console.snippets import KEY_VARIABLE
from accounts.models import ApiKey, Organization, Scope
from core import clock
from core.money import price_text
from inference.catalog.catalog import catalog
from inference.catalog.snapshot import PublishedModel, StampedPrice
from usage.api import throttles
from usage.console.charts import Chart, Metric, stacked
from usage.console.key_names import KeyName, key_name, names_of
from usage.console.query_string import bound_text
from usage.console.sparks import endings_chart
from usage.console.speech_card import speech_card
from usage.models import SpeechDay, UsageRollup
from usage.queries import outcomes
from usage.queries.health import BusiestMinute, Sample, sample
from usage.queries.key_calls import key_calls
from usage.queries.month import PACE_DAYS, MonthSoFar, month_so_far
from usage.queries.periods import Bucket, Period
from usage.queries.selection import Filters
from usage.queries.snapshot import database_snapshot
from usage.refusals.reading import Counted, counted

CALLED_DAYS: Final = 7
"""Calls of so many days count."""


@dataclass(frozen=True, slots=True)
class KeyInUse:
    """A key that still calls the model; ``last_hour`` is the hour of its latest request."""

    key: KeyName
    requests: int
    last_hour: datetime


@dataclass(frozen=True, slots=True)
class Ending:
    """A superseded model; ``days_left`` is None while it has no shutdown date."""

    model: PublishedModel
    days_left: int | None
    keys: tuple[KeyInUse, ...]

    @property
    def requests(self) -> int:
        return sum(each.requests for each in self.keys)


def endings(
    organization: Organization, models: Mapping[str, PublishedModel], now: datetime
) -> list[Ending]:
    """Return the superseded models that still serve, the first to end first, with their callers.

    Raises ``django.db.Error``.
    """
    ending = sorted(
        (
            model
            for model in models.values()
            if model.superseded_by is not None and not model.is_retired(now.timestamp())
        ),
        key=lambda model: (model.shutdown_epoch, model.id),
    )
    found = key_calls(
        str(organization.pk), [model.id for model in ending], now - timedelta(days=CALLED_DAYS)
    )
    names = names_of(organization, {each.api_key_id for each in found}) if found else {}
    by_model: defaultdict[str, list[KeyInUse]] = defaultdict(list)
    for each in found:
        by_model[each.model_identifier].append(
            KeyInUse(names[each.api_key_id], each.requests, each.last_hour)
        )
    return [
        Ending(
            model,
            None if model.shutdown_at is None else max(0, (model.shutdown_at - now).days),
            tuple(by_model[model.id]),
        )
        for model in ending
    ]


ANNOUNCED_TO: Final = timedelta(days=30)
"""Organizations that used a model within this time are told of a higher price."""


@dataclass(frozen=True, slots=True)
class Rise:
    """A higher price that is announced: each pair is from and to."""

    model: str
    since: datetime
    input: tuple[str, str]
    output: tuple[str, str]
    currency: tuple[str, str]


def rises(
    organization: Organization, models: Mapping[str, PublishedModel], now: datetime
) -> list[Rise]:
    """Return the announced higher prices of models that the organization used, the next one first.

    Another currency counts as higher. Raises ``django.db.Error``.
    """
    announced = [
        (model.id, before, after)
        for model in models.values()
        if not model.is_retired(now.timestamp())
        for before, after in pairwise(model.prices)
        if after.effective_from > now.timestamp() and _is_higher(before, after)
    ]
    since = now - ANNOUNCED_TO
    calls = key_calls(str(organization.pk), {model for model, *_ in announced}, since)
    called = {each.model_identifier for each in calls}
    return sorted(
        (
            Rise(
                model,
                datetime.fromtimestamp(after.effective_from, UTC),
                (price_text(before.input), price_text(after.input)),
                (price_text(before.output), price_text(after.output)),
                (before.currency, after.currency),
            )
            for model, before, after in announced
            if model in called
        ),
        key=lambda each: (each.since, each.model),
    )


def _is_higher(before: StampedPrice, after: StampedPrice) -> bool:
    return (
        after.input > before.input
        or after.output > before.output
        or after.currency != before.currency
    )


_NEARLY = 0.8
_MOST_KEYS = 20


@dataclass(frozen=True, slots=True)
class LimitLine:
    """One limit per minute; ``most`` is what the busiest minute used of it."""

    owner: str
    """What it limits; empty for the whole organization."""
    unit: str
    limit: int
    most: int

    @property
    def name(self) -> str:
        return f"{self.owner}, {self.unit}" if self.owner else self.unit.capitalize()

    @property
    def nearly(self) -> int:
        """From where the meter shows a warning."""
        return int(self.limit * _NEARLY)


def limit_lines(
    organization: Organization, models: Mapping[str, PublishedModel], sample: Sample
) -> list[LimitLine]:
    """Return every limit that applies to chat requests of the organization.

    Raises ``django.db.Error``.
    """
    own = organization.requests_per_minute, organization.tokens_per_minute
    # Without a limit no row has to be read.
    lines = [] if own == (None, None) else list(_lines("", *own, sample.busiest_minute()))
    limited = ApiKey.objects.filter(
        Q(requests_per_minute__isnull=False) | Q(tokens_per_minute__isnull=False),
        organization=organization,
        revoked_at=None,
    )
    for key in limited[:_MOST_KEYS]:
        name = key_name(str(key.pk), key.label, key.prefix).text
        lines += key_limit_lines(key, f"Key {name}", sample)
    for model in models.values():
        limits = model.limits.get(str(organization.pk))
        if limits is not None:
            busiest = sample.busiest_minute(model=model.id)
            lines += _lines(model.id, limits.requests_per_minute, limits.tokens_per_minute, busiest)
    return lines


def key_limit_lines(key: ApiKey, owner: str, sample: Sample) -> list[LimitLine]:
    """Return the limits of ``key`` itself, under the name ``owner``."""
    busiest = sample.busiest_minute(api_key_id=key.pk)
    return list(_lines(owner, key.requests_per_minute, key.tokens_per_minute, busiest))


def _lines(
    owner: str, requests: int | None, tokens: int | None, busiest: BusiestMinute
) -> Iterator[LimitLine]:
    if requests is not None:
        yield LimitLine(owner, "requests a minute", requests, busiest.requests)
    if tokens is not None:
        yield LimitLine(owner, "tokens a minute", tokens, busiest.tokens)


HEALTH_HOURS: Final = 24
_MOST_REFUSED: Final = 3


@dataclass(frozen=True, slots=True)
class Steps:
    """The way to the first request: what has been done, and code for the rest."""

    has_key: bool
    requests: list[FirstRequest]


class OverviewPage(ConsoleView):
    """Today and the month, failures and latency of a day, limits, ending models, first steps."""

    section = "overview"

    @database_snapshot()
    def get(self, request: HttpRequest) -> HttpResponse:
        now = clock.now()
        organization_id = str(self.organization.pk)
        models = catalog.current().models
        month = month_so_far(organization_id, now, settings.SVC_DEFAULT_CURRENCY)
        lately = timedelta(hours=HEALTH_HOURS)
        # Whole hours, so that sums have all of it.
        day = Period(clock.hour_of(now - lately), clock.hour_of(now) + timedelta(hours=1))
        ended = outcomes.endings(organization_id, day, Filters(), Bucket.HOUR)
        newest = sample(organization_id, Period(now - lately, now))
        return self.page(
            "console/overview.html",
            now=now,
            month=month,
            pace_days=PACE_DAYS,
            chart=_chart(month, now),
            health=outcomes.add_up(ended.values()),
            ended=endings_chart(ended, day, Bucket.HOUR),
            failures_link=f"?outcome=failed&start={bound_text(day.start)}&end={bound_text(day.end)}",
            limits=limit_lines(self.organization, models, newest),
            throttled=throttles.read(organization_id, day, Filters()),
            refused=_refused(self.organization, day),
            refused_link=f"?start={bound_text(day.start)}&end={bound_text(day.end)}",
            speech=speech_card(self.organization),
            endings=endings(self.organization, models, now),
            rises=rises(self.organization, models, now),
            called_days=CALLED_DAYS,
            steps=self._steps(),
            variable=KEY_VARIABLE,
        )

    def _steps(self) -> Steps | None:
        """None once there was a request."""
        own = {"organization_id": self.organization.pk}
        if UsageRollup.objects.filter(**own).exists() or SpeechDay.objects.filter(**own).exists():
            return None
        scopes = (Scope.INFERENCE, Scope.SPEECH)
        codes = [first_request(self.request, self.organization, scope) for scope in scopes]
        return Steps(
            has_key=ApiKey.objects.filter(**own, revoked_at=None).exists(),
            requests=[each for each in codes if each is not None],
        )


@dataclass(frozen=True, slots=True)
class RefusedBy:
    """The refusals of one key with one error."""

    counted: Counted
    key: KeyName


@dataclass(frozen=True, slots=True)
class Refused:
    """The refused requests of a period: all, and the most frequent ones."""

    total: int
    most: list[RefusedBy]
    more: bool


def _refused(organization: Organization, period: Period) -> Refused | None:
    """None where they were not counted. Raises ``django.db.Error``."""
    found = counted(str(organization.pk), period)
    if found is None:
        return None
    most = found[:_MOST_REFUSED]
    names = names_of(organization, {each.api_key_id for each in most}) if most else {}
    return Refused(
        sum(each.count for each in found),
        [RefusedBy(each, names[each.api_key_id]) for each in most],
        more=len(found) > len(most),
    )


def _chart(month: MonthSoFar, now: datetime) -> Chart | None:
    """Cost by day of this month; requests where costs are in several currencies."""
    first = clock.month_of(now)
    points = [each for each in month.points if each.bucket_start >= first]
    if not points:
        return None
    is_cost = len({each.currency for each in points}) == 1 and _has_cost(month)
    metric = Metric.COST if is_cost else Metric.REQUESTS
    unit = points[0].currency if is_cost else metric.value
    return stacked(points, Period(first, clock.next_month(first)), Bucket.DAY, metric, unit)


def _has_cost(month: MonthSoFar) -> bool:
    costs: Sequence[Decimal] = [each.month for each in month.spendings]
    return any(costs)
