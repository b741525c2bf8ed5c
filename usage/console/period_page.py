"""The base of the console's pages about a period: filters, their errors, and their download."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse

from accounts.console.addresses import reverse
from accounts.console.base import ConsoleView
from accounts.models import Scope
from core.errors import ApiError, PeriodInverted, PeriodTooLong
from usage.console import key_names
from usage.console.key_names import KeyName
from usage.console.query_string import (
    SPEECH,
    PageQuery,
    Preset,
    bound_text,
    last_day_text,
    period_text,
    presets,
)
from usage.queries.periods import LONGEST, Bucket, UsageQuery, parse_query
from usage.queries.series import models_used
from usage.retention.pruned_months import archived_before

_WORDS = {
    "api_key_id": "Choose a key from the list.",
    "model": "Choose a model from the list.",
    "bucket": "Show by day or by hour.",
    "cursor": "This link to older requests is damaged. Begin with the newest ones.",
}
"""The names of the API's parameters in the form."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class FilterBar:
    """The values and choices of the filters above a page."""

    presets: list[Preset]
    start: str
    end: str
    models: list[str]
    keys: list[KeyName]
    key: str
    chosen: dict[str, str]
    errors: dict[str, str] = field(default_factory=dict)
    """What is wrong with a field, by its name."""

    @property
    def custom(self) -> bool:
        """Whether the period is not a preset."""
        return not any(preset.current for preset in self.presets)

    @property
    def start_type(self) -> str:
        return _input_type(self.start)

    @property
    def end_name(self) -> str:
        """A day is sent as the last day, ``until``; any other moment as the API's ``end``."""
        return "until" if _input_type(self.end) == "date" else "end"

    @property
    def end_type(self) -> str:
        return _input_type(self.end)


def _input_type(bound: str) -> str:
    """The input's type: a browser's date picker allows dates only; other moments are typed."""
    return "date" if not bound or _DATE.fullmatch(bound) else "text"


class PeriodPage(ConsoleView, ABC):
    """Base of the pages about a period: the filters and their errors."""

    template: ClassVar[str]
    page_query: PageQuery
    archived: datetime | None
    """The result of ``archived_before``."""

    def get(self, request: HttpRequest) -> HttpResponse:
        self.page_query = PageQuery.of(request.GET)
        query = None
        try:
            query = parse_query({**self.page_query.parameters, "group_by": "model,api_key"})
            self.archived = self.archived_before(query)
            shown = self.shown(query)
        except ApiError as problem:
            bar = self._bar(errors=_errors(problem, is_parsed=query is not None))
            return self.page(
                self.template,
                problem.status,
                bar=bar,
                page_query=self.page_query,
                problem=problem,
                **self.frame(),
            )
        return self.page(
            self.template,
            bar=self._bar(query),
            page_query=self.page_query,
            period=period_text(query.period),
            archived=self.archived,
            **self.frame(),
            **shown,
        )

    def frame(self) -> dict[str, Any]:
        """The page's variables that do not depend on valid filters."""
        return {}

    def archived_before(self, query: UsageQuery) -> datetime | None:
        """The moment before which rows that the page is about are archived; None without any."""
        return None if self.is_speech else archived_before(query.period)

    @property
    def is_speech(self) -> bool:
        """Whether the page shows speech instead of chats."""
        return self.page_query.parameters.get("surface") == SPEECH

    @property
    def key_scopes(self) -> tuple[Scope, ...]:
        """Those of the keys that the filter offers."""
        return (Scope.SPEECH,) if self.is_speech else (Scope.INFERENCE,)

    def usage_tabs(self) -> list[tuple[str, str, bool]]:
        """The tabs above the usage: their names, their addresses, and which one is shown."""
        link, address = self.page_query.link, reverse("console-usage")
        return [
            ("Chat", address + link(surface=None, voice=None), not self.is_speech),
            ("Speech", address + link(surface=SPEECH, model=None), self.is_speech),
        ]

    def link_to(self, bucket: Bucket) -> Callable[[datetime], str]:
        """Return the address that a bar leads to: a day's hours, or an hour's requests."""

        def link(start: datetime) -> str:
            step = timedelta(days=1) if bucket is Bucket.DAY else timedelta(hours=1)
            if start > datetime.max.replace(tzinfo=UTC) - step:
                return ""  # the calendar ends
            bounds = {"start": bound_text(start), "end": bound_text(start + step)}
            if bucket is Bucket.DAY:
                return self.page_query.link(**bounds, bucket=Bucket.HOUR.value)
            return f"{reverse('console-requests')}{self.page_query.link(**bounds)}"

        return link

    def offered_models(self, query: UsageQuery) -> list[str]:
        """The models that the filter offers."""
        return models_used(str(self.organization.pk), query.period)

    @abstractmethod
    def shown(self, query: UsageQuery) -> dict[str, Any]:
        """Return the page's own variables. Raises ``ApiError`` for an invalid parameter."""

    def totals_links(self, name: str, groups: Iterable[str]) -> list[tuple[str, str]]:
        """The names and addresses of the totals as CSV, by each of ``groups``."""
        return [
            (f"Totals by {each} as CSV", reverse(name) + self.page_query.link(by=each))
            for each in groups
        ]

    def _bar(
        self, query: UsageQuery | None = None, errors: dict[str, str] | None = None
    ) -> FilterBar:
        """The filters as parsed in ``query``; without one, as they were typed, with ``errors``."""
        chosen = dict(self.page_query.parameters)
        if query is None:
            return FilterBar(
                presets(self.page_query, None),
                chosen.get("start", ""),
                last_day_text(chosen.get("end", "")),
                [chosen["model"]] if "model" in chosen else [],
                key_names.choices(self.organization, None, self.key_scopes),
                "",
                chosen,
                errors or {},
            )
        models = self.offered_models(query)
        model, key = query.filters.model, query.filters.api_key_id
        return FilterBar(
            presets(self.page_query, query.period),
            bound_text(query.period.start),
            last_day_text(bound_text(query.period.end)),
            [*models, model] if model is not None and model not in models else models,
            key_names.choices(self.organization, key, self.key_scopes),
            key or "",
            chosen,
        )


def _errors(problem: ApiError, *, is_parsed: bool) -> dict[str, str]:
    """``problem`` in the words of the form, by the field that it stands at.

    ``is_parsed``: every parameter has the right form.
    """
    if isinstance(problem, PeriodInverted):
        return {"end": "The last day is before the first one."}
    if isinstance(problem, PeriodTooLong):
        return {"end": f"Choose at most {LONGEST.days} days."}
    if problem.param in ("start", "end") and not is_parsed:
        return {problem.param: "Enter a day, such as 2026-11-01."}
    if problem.param in _WORDS:
        return {problem.param: _WORDS[problem.param]}
    return {problem.param: problem.message} if problem.param else {}


def in_words(problem: ApiError) -> str:
    """``problem`` in the words of the form, for a page that does not have it."""
    return next(iter(_errors(problem, is_parsed=True).values()), problem.message)
