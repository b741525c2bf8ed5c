"""The usage of a period in few lines, as CSV: by day, by model or by key."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from django.http import HttpRequest, HttpResponse

from accounts.console.base import ConsoleView
from core.errors import ApiError
from core.money import cost_units_text
from usage.api.export_views import filename
from usage.console.key_names import KeyName, names_of
from usage.console.period_page import in_words
from usage.console.query_string import PageQuery
from usage.queries.periods import Bucket, GroupBy, parse_query
from usage.queries.sums import Breakdown, breakdowns
from usage.retention.pruned_months import require_sums

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
    "cached_input_tokens",
    "cache_reported_input_tokens",
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Where a formula begins; Japanese spreadsheets take full-width signs for them too (OWASP, CSV injection)."""


class TotalsView(ConsoleView):
    """``GET /console/acme/usage/totals.csv``: the filters of the usage page, and ``by``.

    One line for each day, model or key, and currency, by name. The lines add up to the page's cards.
    """

    def get(self, request: HttpRequest) -> HttpResponse:
        asked = request.GET.get("by", "")
        shown = asked if asked in GROUPS else "day"
        by = GROUPS[shown]
        try:
            query = parse_query(PageQuery.of(request.GET).parameters)
            require_sums(query.period)
        except ApiError as problem:
            return self.page("console/wrong_download.html", problem.status, words=in_words(problem))
        query = replace(query, group_by=(by,), bucket=Bucket.DAY)
        found = breakdowns(str(self.organization.pk), query)[by]
        names: Mapping[str, KeyName] = {}
        if by is GroupBy.API_KEY:
            names = names_of(self.organization, [key for (key,) in found])
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        name = filename(self.organization, query.period, f"by-{shown}")
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        writer = csv.writer(response)
        writer.writerow((*_NAMES[by], *_FIGURES))
        writer.writerows(_lines(by, found, names))
        return response


def _lines(by: GroupBy, found: Breakdown, names: Mapping[str, KeyName]) -> Iterator[list[object]]:
    for key, parts in sorted(found.items()):
        name = key[0][:10] if by is GroupBy.TIME else key[0]
        begin = [name, names[name].text] if by is GroupBy.API_KEY else [name]
        for each in parts:
            figures = (each.requests, *each.figures[:3], cost_units_text(each.units))
            yield [*map(plain, begin), *figures, each.currency, *each.cache]


def plain(text: str) -> str:
    """``text`` so that a spreadsheet never takes it for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
