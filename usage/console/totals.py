"""The usage of a period in few lines, as CSV: by day, by model or by key."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from django.http import HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from svc_project.lib.errors import ApiError
from svc_project.lib.money import cost_units_text
from usage.console.key_names import KeyName, names_of
from usage.console.query_string import Place
from usage.queries.periods import Bucket, GroupBy, parse_query
from usage.queries.sums import Breakdown, PricedSum, breakdowns

GROUPS: Final[Mapping[str, GroupBy]] = {
    "day": GroupBy.TIME,
    "model": GroupBy.MODEL,
    "key": GroupBy.API_KEY,
}
_NAMES: Final = {
    GroupBy.TIME: ("day",),
    GroupBy.MODEL: ("model_identifier",),
    GroupBy.API_KEY: ("api_key_id", "api_key_label"),
}
_FIGURES: Final = (
    "requests",
    "input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost",
    "currency",
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class TotalsView(ConsoleView):
    """``GET /console/usage/totals.csv``: the filters of the usage page, and ``by``.

    One line for each day, model or key, and currency, by name. The lines add up to the page's cards.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        by = GROUPS.get(request.GET.get("by", ""), GroupBy.TIME)
        try:
            query = parse_query(Place.of(request.GET).parameters)
        except ApiError as problem:
            return self.page("console/wrong_download.html", problem.status, problem=problem)
        query = replace(query, group_by=(by,), bucket=Bucket.DAY)
        found = breakdowns(str(self.organization.pk), query)[by]
        names: Mapping[str, KeyName] = {}
        if by is GroupBy.API_KEY:
            names = names_of(self.organization, [key for (key,) in found])
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = f'attachment; filename="usage-by-{by.value}.csv"'
        writer = csv.writer(response)
        writer.writerow((*_NAMES[by], *_FIGURES))
        writer.writerows(_lines(by, found, names))
        return response


def _lines(by: GroupBy, found: Breakdown, names: Mapping[str, KeyName]) -> Iterator[list[object]]:
    for key, parts in sorted(found.items()):
        name = key[0][:10] if by is GroupBy.TIME else key[0]
        begin = [name, names[name].text] if by is GroupBy.API_KEY else [name]
        for currency, sums in sorted(_by_currency(parts).items()):
            yield [*(_plain(each) for each in begin), *_figures(sums), currency]


def _by_currency(parts: Iterable[PricedSum]) -> dict[str, list[PricedSum]]:
    found: defaultdict[str, list[PricedSum]] = defaultdict(list)
    for part in parts:
        found[part.currency].append(part)
    return found


def _figures(parts: Sequence[PricedSum]) -> list[object]:
    units = sum(
        part.figures[0] * part.input_price + part.figures[1] * part.output_price for part in parts
    )
    tokens = [sum(part.figures[place] for part in parts) for place in range(3)]
    return [sum(part.requests for part in parts), *tokens, cost_units_text(units)]


def _plain(text: str) -> str:
    """``text`` so that a spreadsheet never takes it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
