"""The console's pages of models: the catalog as the organization sees it, and one page a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from accounts.console.first_request import inference_url
from accounts.console.snippets import KEY_VARIABLE, chat
from core import clock
from core.money import price_text, sum_costs
from inference.catalog.catalog import catalog
from inference.catalog.model_object import JSON_SCHEMA_SUBSET
from inference.catalog.snapshot import PublishedModel, StampedPrice
from inference.console.overview import CALLED_DAYS, Ending, endings
from usage.console.charts import Chart, Metric, stacked
from usage.console.query_string import bound_text
from usage.console.sorting import Order
from usage.queries.outcomes import whole
from usage.queries.periods import Bucket, Period, UsageQuery
from usage.queries.selection import Filters
from usage.queries.series import Point, series

USE_DAYS: Final = 30
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class PriceLine:
    """One price of a model; ``until`` is None for the last one."""

    input: str
    output: str
    currency: str
    since: datetime
    until: datetime | None
    is_now: bool
    is_announced: bool


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model as the list shows it, with the organization's use of the last ``USE_DAYS`` days."""

    model: PublishedModel
    price: PriceLine
    announced: PriceLine | None
    days_left: int | None
    is_served: bool
    requests: int = 0
    cost: Decimal = Decimal(0)
    currency: str = ""


_ORDER = Order[ModelLine](
    {
        "name": attrgetter("model.id"),
        "input": lambda line: Decimal(line.price.input),
        "output": lambda line: Decimal(line.price.output),
        "context": attrgetter("model.context_length"),
        "requests": attrgetter("requests"),
        "cost": attrgetter("cost"),
    },
    default="name",
)


def serving_lines() -> list[ModelLine]:
    """Every model that serves, by name, without anybody's use."""
    now = clock.now()
    models = sorted(catalog.current().models.items())
    lines = [_line(model, now, ()) for _, model in models if not model.is_retired(now.timestamp())]
    return [line for line in lines if line.is_served]


class ModelsPage(ConsoleView):
    """Every published model, those that serve first."""

    section = "models"

    def get(self, request: HttpRequest) -> HttpResponse:
        now = clock.now()
        models = catalog.current().models
        points = series(str(self.organization.pk), last_days(now, Filters()))
        lines = [_line(model, now, points) for _, model in sorted(models.items())]
        sort = request.GET.get("sort")
        return self.page(
            "console/models.html",
            serving=_ORDER.sort(
                (line for line in lines if not line.model.is_retired(now.timestamp())), sort
            ),
            heads=_ORDER.heads(sort, lambda name: f"?sort={name}"),
            retired=[line for line in lines if line.model.is_retired(now.timestamp())],
            use_days=USE_DAYS,
        )


class ModelPage(ConsoleView):
    """One model: prices, limits of a request, abilities, status, own use and latency, code."""

    section = "models"

    def get(self, request: HttpRequest, identifier: str) -> HttpResponse:
        now = clock.now()
        models = catalog.current().models
        model = models.get(identifier)
        if model is None:
            raise Http404
        organization_id = str(self.organization.pk)
        query = last_days(now, Filters(model=identifier))
        points = series(organization_id, query)
        return self.page(
            "console/model.html",
            line=_line(model, now, points),
            prices=_prices(model, now),
            is_retired=model.is_retired(now.timestamp()),
            published=datetime.fromtimestamp(model.created, UTC),
            subset=JSON_SCHEMA_SUBSET,
            ending=self._ending(model, now),
            called_days=CALLED_DAYS,
            limits=model.limits.get(organization_id),
            chart=_chart(points, query.period),
            health=whole(organization_id, query.period, query.filters),
            use_days=USE_DAYS,
            period=f"start={bound_text(query.period.start)}&end={bound_text(query.period.end)}",
            snippets=chat(inference_url(request), _example(identifier)),
            variable=KEY_VARIABLE,
        )

    def _ending(self, model: PublishedModel, now: datetime) -> Ending | None:
        found = endings(self.organization, {model.id: model}, now)
        return found[0] if found else None


def _example(identifier: str) -> dict[str, Any]:
    return {"model": identifier, "messages": [{"role": "user", "content": "Hello!"}]}


def last_days(now: datetime, filters: Filters) -> UsageQuery:
    """The query of the last ``USE_DAYS`` days, today included, by day."""
    today = clock.day_of(now)
    period = Period(today - (USE_DAYS - 1) * _DAY, today + _DAY)
    return UsageQuery(period, filters, Bucket.DAY, ())


def _line(model: PublishedModel, now: datetime, points: Iterable[Point]) -> ModelLine:
    own = [point for point in points if point.name == model.id]
    prices = _prices(model, now)
    line = ModelLine(
        model,
        price=next(each for each in prices if each.is_now),
        announced=next((each for each in reversed(prices) if each.is_announced), None),
        days_left=None if model.shutdown_at is None else (model.shutdown_at - now).days,
        is_served=bool(model.deployments),
    )
    currencies = {point.currency for point in own}
    line = replace(line, requests=sum(point.requests for point in own))
    if len(currencies) != 1:
        return line
    return replace(line, cost=sum_costs(point.cost for point in own), currency=currencies.pop())


def _prices(model: PublishedModel, now: datetime) -> list[PriceLine]:
    """The prices of ``model``, the newest first, announced ones included."""
    current = model.price_at(now.timestamp())
    untils: list[StampedPrice | None] = [*model.prices[1:], None]
    lines = [
        PriceLine(
            price_text(price.input),
            price_text(price.output),
            price.currency,
            datetime.fromtimestamp(price.effective_from, UTC),
            None if after is None else datetime.fromtimestamp(after.effective_from, UTC),
            is_now=price is current,
            is_announced=price.effective_from > now.timestamp(),
        )
        for price, after in zip(model.prices, untils, strict=True)
    ]
    return lines[::-1]


def _chart(points: list[Point], period: Period) -> Chart | None:
    if not points:
        return None
    return stacked(points, period, Bucket.DAY, Metric.REQUESTS, Metric.REQUESTS.value)
