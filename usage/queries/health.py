"""What a failure is, percentiles of times, and the busiest minute of an organization's newest requests.

The roll-ups have no minutes, so those come from the rows: from at most ``MOST_ROWS`` of the newest ones,
which one index gives in order. What is read does not grow with the ledger. Failures and times of a period:
``usage.queries.outcomes``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from usage.models import Outcome, UsageRow
from usage.queries.periods import Period
from usage.queries.selection import Filters

MOST_ROWS: Final = 5000
_COLUMNS: Final = (
    *("occurred_at", "api_key_id", "model_identifier"),
    *("backend_reported_input_tokens", "backend_reported_output_tokens"),
)
_MINUTE: Final = {
    "postgresql": "date_trunc('minute', occurred_at)::text",
    "sqlite": "substr(occurred_at, 1, 16)",
}

UNFAILED: Final = frozenset({Outcome.SUCCESS, Outcome.CLIENT_DISCONNECTED})
"""Outcomes that are no failure of the request."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of successful requests, in milliseconds."""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True)
class BusiestMinute:
    requests: int
    tokens: int


class Minute(NamedTuple):
    """The requests of one key to one model in one clock minute."""

    start: str
    api_key_id: UUID
    model_identifier: str
    requests: int
    tokens: int


class Sample:
    """The newest rows of a period, added up by the database when they are first asked for."""

    def __init__(self, rows: QuerySet[UsageRow, Any]) -> None:
        self._newest = rows.order_by("-occurred_at", "-request_id").values(*_COLUMNS)[:MOST_ROWS]

    def busiest_minute(
        self, *, api_key_id: UUID | None = None, model: str | None = None
    ) -> BusiestMinute:
        """The most requests, and the most tokens, of one clock minute, of one key or model.

        Raises ``django.db.Error``.
        """
        if api_key_id is None and model is None:
            return self._busiest
        requests: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for minute in self._minutes:
            if api_key_id in (None, minute.api_key_id) and model in (
                None,
                minute.model_identifier,
            ):
                requests[minute.start] += minute.requests
                tokens[minute.start] += minute.tokens
        return BusiestMinute(max(requests.values(), default=0), max(tokens.values(), default=0))

    @cached_property
    def _busiest(self) -> BusiestMinute:
        """That of all keys and models, in one row: it is what most pages show."""
        by_minute, parameters = self._added_up("")
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT max(requests), max(tokens) FROM ({by_minute}) AS minutes",  # noqa: S608
                parameters,
            )
            return BusiestMinute(*(int(most or 0) for most in cursor.fetchone()))

    @cached_property
    def _minutes(self) -> list[Minute]:
        by_minute, parameters = self._added_up("api_key_id, model_identifier, ")
        with connection.cursor() as cursor:
            cursor.execute(by_minute, parameters)
            return [
                Minute(start, UUID(str(key)), model, requests, int(tokens))
                for key, model, start, requests, tokens in cursor.fetchall()
            ]

    def _added_up(self, keys: str) -> tuple[str, Any]:
        """SQL of the sums of the newest rows by ``keys`` and minute, and its parameters."""
        newest, parameters = self._newest.query.sql_with_params()
        added = "count(*) AS requests, sum(backend_reported_input_tokens + backend_reported_output_tokens) AS tokens"
        minute = _MINUTE[connection.vendor]
        # names are ours
        sql = f"SELECT {keys}{minute} AS start, {added} FROM ({newest}) AS newest GROUP BY {keys}start"  # noqa: S608
        return sql, parameters


def sample(organization_id: str, period: Period, filters: Filters | None = None) -> Sample:
    """Return the newest rows of ``period``, of one key where ``filters`` name it."""
    rows = UsageRow.objects.filter(
        organization_id=organization_id,
        occurred_at__gte=period.start,
        occurred_at__lt=period.end,
    )
    if filters is not None and filters.api_key_id is not None:
        rows = rows.filter(api_key_id=filters.api_key_id)
    return Sample(rows)
