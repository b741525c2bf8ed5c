"""The console's usage page: the summary of ``GET /v1/usage`` as cards, a chart and tables.

Its query string is the API's own, plus ``metric`` (what the chart shows), ``by`` (what its bars are
made of) and ``until`` (the last day of the period).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from usage.api.summary import summary_of
from usage.api.wire import Cost, TokenFigures, UsageSummary
from usage.console.charts import Chart, Metric, drawn_bucket, stacked
from usage.console.key_names import distinct_texts, key_name
from usage.console.period_page import PeriodPage
from usage.console.query_string import api_query, curl
from usage.console.sorting import Order
from usage.console.sparks import endings_chart
from usage.console.totals import GROUPS
from usage.queries import outcomes
from usage.queries.periods import Bucket, GroupBy, Period, UsageQuery
from usage.queries.series import Dimension, Point, series
from usage.queries.snapshot import database_snapshot
from usage.queries.sums import Breakdown, CacheSums, Key, add_up, breakdowns
from usage.retention.pruned_months import require_sums

API_PATH = "/v1/usage"
EXPORT_PATH = "/v1/usage/export"
_BY: dict[str, Dimension] = {"model": "model_identifier", "key": "api_key_id"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a breakdown's table; ``cost`` is ``None`` when it mixes currencies."""

    name: str
    detail: str
    link: str
    requests: int
    tokens: TokenFigures
    cost: Cost | None
    cache: CacheSums


@dataclass(frozen=True, slots=True)
class CurrencyTotal:
    """The cost of a period in one of its currencies."""

    currency: str
    total: Decimal


class UsagePage(PeriodPage):
    """Cards, chart, tables by model and by key, throttled requests, and the API call."""

    section = "usage"
    template = "console/usage.html"

    def frame(self) -> dict[str, Any]:
        return {"surfaces": self.usage_tabs()}

    @database_snapshot()
    def shown(self, query: UsageQuery) -> dict[str, Any]:
        require_sums(query.period)
        organization_id = str(self.organization.pk)
        sums = breakdowns(organization_id, query)
        summary = summary_of(organization_id, query, sums)
        caches = _caches(sums)
        everything = add_up(chain.from_iterable(sums[query.group_by[0]].values()))
        bucket = drawn_bucket(query.period, query.bucket)
        by = self._by()
        ended = outcomes.endings(organization_id, query.period, query.filters, bucket)
        points = series(organization_id, replace(query, bucket=bucket), _BY[by])
        metric = self._metric()
        sort = self.page_query.parameters.get("sort")
        named = self._named(points, summary) if by == "key" else points
        return {
            "summary": summary,
            "totals": [CurrencyTotal(each.currency, each.cost) for each in everything],
            "cache": CacheSums.of(everything),
            "metric": metric,
            "metrics": [(each, self.page_query.link(metric=each.value)) for each in Metric],
            "tokens_link": self.page_query.link(metric=Metric.TOKENS.value),
            "by": by,
            "downloads": self._downloads(query),
            "dimensions": [(each, self.page_query.link(by=each)) for each in _BY],
            "chart": _chart(named, query.period, bucket, metric, self.link_to(bucket)),
            "health": outcomes.add_up(ended.values()),
            "ended": endings_chart(ended, query.period, bucket),
            "failures_link": self.page_query.link(outcome="failed"),
            "coarser": bucket is not query.bucket,
            "models": _ORDER.sort(self._models(summary, caches), sort),
            "keys": _ORDER.sort(self._keys(summary, caches), sort),
            "heads": _ORDER.heads(sort, lambda name: self.page_query.link(sort=name)),
            "curl": curl(self._api_address(query)),
        }

    def _metric(self) -> Metric:
        """The metric that the query string names; cost by default."""
        asked = self.page_query.parameters.get("metric")
        return Metric(asked) if asked in set(Metric) else Metric.COST

    def _by(self) -> str:
        """What the bars are made of: models by default."""
        asked = self.page_query.parameters.get("by")
        return asked if asked in _BY else "model"

    def _named(self, points: Sequence[Point], summary: UsageSummary) -> list[Point]:
        """Points by key, under the names of the keys."""
        used = {point.name for point in points}
        names = {each: key_name(each, None, None) for each in used} | {
            each.key.api_key_id: key_name(
                each.key.api_key_id, each.key.api_key_label, each.key.api_key_prefix
            )
            for each in summary.breakdowns.api_key or ()
        }
        texts = distinct_texts(names)
        return [msgspec.structs.replace(point, name=texts[point.name]) for point in points]

    def _api_address(self, query: UsageQuery) -> str:
        asked = api_query(
            query.period,
            query.filters,
            group_by=",".join(query.group_by),
            bucket=self.page_query.parameters.get("bucket", ""),
        )
        return self.request.build_absolute_uri(f"{API_PATH}?{asked}")

    def _downloads(self, query: UsageQuery) -> list[tuple[str, str]]:
        """The names and addresses of files; archived rows cannot be downloaded."""
        totals = self.totals_links("console-totals", GROUPS)
        if self.archived is not None:
            return totals
        own = str(self.organization.pk)
        asked = api_query(query.period, query.filters, format="csv", organization=own)
        return [("Requests as CSV", f"{EXPORT_PATH}?{asked}"), *totals]

    def _models(self, summary: UsageSummary, caches: Mapping[Key, CacheSums]) -> list[Line]:
        return _by_name(
            Line(
                entry.key.model_identifier,
                "",
                self.page_query.link(model=entry.key.model_identifier),
                entry.requests,
                entry.tokens,
                entry.cost,
                caches[entry.key.model_identifier, entry.key.model_id],
            )
            for entry in summary.breakdowns.model or ()
        )

    def _keys(self, summary: UsageSummary, caches: Mapping[Key, CacheSums]) -> list[Line]:
        named = (
            (key_name(each.key.api_key_id, each.key.api_key_label, each.key.api_key_prefix), each)
            for each in summary.breakdowns.api_key or ()
        )
        return _by_name(
            Line(
                name.text,
                name.prefix,
                self.page_query.link(api_key_id=name.api_key_id),
                entry.requests,
                entry.tokens,
                entry.cost,
                caches[(name.api_key_id,)],
            )
            for name, entry in named
        )


def _caches(sums: Mapping[GroupBy, Breakdown]) -> dict[Key, CacheSums]:
    """What servers had cached of each model's and key's prompts."""
    return {
        key: CacheSums.of(parts)
        for by in (GroupBy.MODEL, GroupBy.API_KEY)
        for key, parts in sums[by].items()
    }


def _by_name(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=attrgetter("name"))


def _by_cost(line: Line) -> tuple[bool, Decimal, int]:
    """Lines that mix currencies come after all others, and first where the highest cost does."""
    return line.cost is None, Decimal(line.cost.total if line.cost else 0), line.requests


_ORDER = Order[Line](
    {
        "name": attrgetter("name"),
        "requests": attrgetter("requests"),
        "input": attrgetter("tokens.backend_reported_input"),
        "output": attrgetter("tokens.backend_reported_output"),
        "cost": _by_cost,
    },
    default="-cost",
)


def _chart(
    points: Sequence[Point],
    period: Period,
    bucket: Bucket,
    metric: Metric,
    link_to: Callable[[datetime], str],
) -> Chart | None:
    """Return the chart; ``None`` without points, and for costs in several currencies."""
    currencies = {point.currency for point in points}
    if not points or (metric is Metric.COST and len(currencies) > 1):
        return None
    unit = currencies.pop() if metric is Metric.COST else metric.value
    return stacked(points, period, bucket, metric, unit, link_to)
