"""The console's usage page: the summary of ``GET /v1/usage`` for people who would rather look.

Its query string is the API's own; ``metric`` (what the chart stacks) is the page's.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse

from accounts.console import ConsoleView
from svc_project.lib.errors import ApiError
from svc_project.lib.money import cost_text, sum_costs
from usage import key_names
from usage.charts import Chart, Metric, drawn_bucket, stacked
from usage.console_place import Place, Preset, api_query, bound_text, curl, period_text, presets
from usage.console_speech import speech_card
from usage.key_names import KeyName, key_name
from usage.meanings import figures
from usage.periods import Bucket, Period, UsageQuery, parse_query
from usage.series import Point, models_used, series
from usage.summary import summarize
from usage.wire import Cost, TokenFigures, UsageSummary

API_PATH = "/v1/usage"
EXPORT_PATH = "/v1/usage/export"
_JSON_PAGE = "10000"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class FilterBar:
    """What the filters above a page show and offer."""

    presets: list[Preset]
    start: str
    end: str
    models: list[str]
    keys: list[KeyName]
    key: str
    chosen: dict[str, str]

    @property
    def custom(self) -> bool:
        """Whether the period has no name."""
        return not any(preset.current for preset in self.presets)

    @property
    def start_type(self) -> str:
        return _input_type(self.start)

    @property
    def end_type(self) -> str:
        return _input_type(self.end)


def _input_type(bound: str) -> str:
    """A browser's date picker takes dates only; a moment within a day is typed."""
    return "date" if not bound or _DATE.fullmatch(bound) else "text"


class PeriodPage(ConsoleView, ABC):
    """The base of the pages about a period: the filters, and what is wrong with them."""

    template: ClassVar[str]
    place: Place

    def get(self, request: HttpRequest) -> HttpResponse:
        self.place = Place.of(request.GET)
        try:
            query = parse_query({**self.place.parameters, "group_by": "model,api_key"})
            shown = self.shown(query)
        except ApiError as problem:
            return self.page(
                self.template, problem.status, bar=self._bar(), place=self.place, problem=problem
            )
        return self.page(
            self.template,
            bar=self._bar(query),
            place=self.place,
            period=period_text(query.period),
            exports=_exports(query),
            **shown,
        )

    @abstractmethod
    def shown(self, query: UsageQuery) -> dict[str, Any]:
        """The page's own variables. Raises ``ApiError`` for a parameter that is not valid."""

    def _bar(self, query: UsageQuery | None = None) -> FilterBar:
        """The filters as ``query`` understood them; without one, as they were typed."""
        chosen = dict(self.place.parameters)
        if query is None:
            return FilterBar(
                presets(self.place, None),
                chosen.get("start", ""),
                chosen.get("end", ""),
                [chosen["model"]] if "model" in chosen else [],
                key_names.choices(self.organization, None),
                "",
                chosen,
            )
        models = models_used(str(self.organization.pk), query.period)
        model, key = query.filters.model, query.filters.api_key_id
        return FilterBar(
            presets(self.place, query.period),
            bound_text(query.period.start),
            bound_text(query.period.end),
            [*models, model] if model is not None and model not in models else models,
            key_names.choices(self.organization, key),
            key or "",
            chosen,
        )


def _exports(query: UsageQuery) -> dict[str, str]:
    """Where the same rows can be downloaded, by format."""
    asked = {"csv": {"format": "csv"}, "json": {"format": "json", "limit": _JSON_PAGE}}
    return {
        name: f"{EXPORT_PATH}?{api_query(query.period, query.filters, **more)}"
        for name, more in asked.items()
    }


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a breakdown's table; ``cost`` is ``None`` when it mixes currencies."""

    name: str
    detail: str
    link: str
    requests: int
    tokens: TokenFigures
    cost: Cost | None


@dataclass(frozen=True, slots=True)
class CurrencyTotal:
    """What a period costs in one of its currencies."""

    currency: str
    total: Decimal

    @property
    def text(self) -> str:
        return cost_text(self.total)


class UsagePage(PeriodPage):
    """Cards, chart, tables by model and by key, what was throttled, speech, and where to get the same."""

    section = "usage"
    template = "console/usage.html"

    def shown(self, query: UsageQuery) -> dict[str, Any]:
        organization_id = str(self.organization.pk)
        summary = summarize(organization_id, query)
        bucket = drawn_bucket(query.period, query.bucket)
        points = series(organization_id, replace(query, bucket=bucket))
        totals = _currency_totals(points)
        metric = self._metric()
        return {
            "summary": summary,
            "places": _places(max((each.total for each in totals), default=Decimal(0))),
            "totals": totals,
            "figures": figures(summary.tokens),
            "metric": metric,
            "metrics": [(each, self.place.link(metric=each.value)) for each in Metric],
            "tokens_link": self.place.link(metric=Metric.TOKENS.value),
            "chart": _chart(points, query.period, bucket, metric),
            "coarser": bucket is not query.bucket,
            "models": self._models(summary),
            "keys": self._keys(summary),
            "speech": speech_card(self.organization),
            "curl": curl(self._api_address(query)),
        }

    def _metric(self) -> Metric:
        """Cost, unless another one is asked for by its name."""
        asked = self.place.parameters.get("metric")
        return Metric(asked) if asked in set(Metric) else Metric.COST

    def _api_address(self, query: UsageQuery) -> str:
        asked = api_query(
            query.period,
            query.filters,
            group_by=",".join(query.group_by),
            bucket=self.place.parameters.get("bucket", ""),
        )
        return self.request.build_absolute_uri(f"{API_PATH}?{asked}")

    def _models(self, summary: UsageSummary) -> list[Line]:
        return _by_cost(
            Line(
                entry.key.model_identifier,
                "",
                self.place.link(model=entry.key.model_identifier),
                entry.requests,
                entry.tokens,
                entry.cost,
            )
            for entry in summary.breakdowns.model or ()
        )

    def _keys(self, summary: UsageSummary) -> list[Line]:
        named = (
            (key_name(each.key.api_key_id, each.key.api_key_label, each.key.api_key_prefix), each)
            for each in summary.breakdowns.api_key or ()
        )
        return _by_cost(
            Line(
                name.text,
                name.prefix,
                self.place.link(api_key_id=name.api_key_id),
                entry.requests,
                entry.tokens,
                entry.cost,
            )
            for name, entry in named
        )


def _by_cost(lines: Iterable[Line]) -> list[Line]:
    """The dearest first; those without one cost before all."""
    return sorted(
        lines,
        key=lambda line: (
            line.cost is not None,
            -Decimal(line.cost.total if line.cost else 0),
            -line.requests,
            line.name,
        ),
    )


def _currency_totals(points: Sequence[Point]) -> list[CurrencyTotal]:
    costs: defaultdict[str, list[Decimal]] = defaultdict(list)
    for point in points:
        costs[point.currency].append(point.cost)
    return [CurrencyTotal(currency, sum_costs(costs[currency])) for currency in sorted(costs)]


def _places(highest: Decimal) -> int:
    """How many decimals a page's costs are rounded to, so that a column lines up."""
    return 2 if highest >= 1 else 6


def _chart(points: Sequence[Point], period: Period, bucket: Bucket, metric: Metric) -> Chart | None:
    """``None`` without points, and for costs that are of several currencies: no sum of these."""
    currencies = {point.currency for point in points}
    if not points or (metric is Metric.COST and len(currencies) > 1):
        return None
    unit = currencies.pop() if metric is Metric.COST else metric.value
    return stacked(points, period, bucket, metric, unit)
