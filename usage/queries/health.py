"""What a failure is, percentiles of times, and the busiest minute of an organization's newest requests.

The roll-ups have no minutes, so those come from the rows: from at most ``MOST_ROWS`` of the newest ones,
which one index gives in order. What is read does not grow with the ledger. Failures and times of a period:
``usage.queries.outcomes``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from usage.models import Outcome, UsageRow
from usage.queries.periods import Period
from usage.queries.selection import Filters

MOST_ROWS: Final = 5000

UNFAILED: Final = frozenset({Outcome.SUCCESS, Outcome.CLIENT_DISCONNECTED})
"""Outcomes that are no failure of the request."""


class Sampled(NamedTuple):
    """The columns of a row that are read here."""

    occurred_at: datetime
    api_key_id: UUID
    model_identifier: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of successful requests, in milliseconds."""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True)
class BusiestMinute:
    requests: int
    tokens: int


class Sample:
    """The newest rows of a period, read when they are first asked for."""

    def __init__(self, rows: QuerySet[UsageRow, Any]) -> None:
        self._newest = rows

    def busiest_minute(
        self, *, api_key_id: UUID | None = None, model: str | None = None
    ) -> BusiestMinute:
        """The most requests, and the most tokens, of one clock minute, of one key or model.

        Raises ``django.db.Error``.
        """
        requests: Counter[datetime] = Counter()
        tokens: Counter[datetime] = Counter()
        for row in self._rows:
            if api_key_id not in (None, row.api_key_id) or model not in (
                None,
                row.model_identifier,
            ):
                continue
            minute = row.occurred_at.replace(second=0, microsecond=0)
            requests[minute] += 1
            tokens[minute] += row.input_tokens + row.output_tokens
        return BusiestMinute(max(requests.values(), default=0), max(tokens.values(), default=0))

    @cached_property
    def _rows(self) -> list[Sampled]:
        return [
            Sampled(*columns)
            for columns in self._newest.order_by("-occurred_at", "-request_id").values_list(
                "occurred_at",
                "api_key_id",
                "model_identifier",
                "backend_reported_input_tokens",
                "backend_reported_output_tokens",
            )[:MOST_ROWS]
        ]


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
