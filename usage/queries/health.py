"""The health of an organization's newest requests: failures, latency, and the busiest minute.

The roll-ups have neither outcomes nor times, so these numbers come from the rows: from at most
``MOST_ROWS`` of the newest ones, which one index gives in order. What is read does not grow with
the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from usage.models import Outcome, UsageRow
from usage.queries.latest import time_reached
from usage.queries.periods import Period
from usage.queries.selection import Filters

MOST_ROWS: Final = 5000

UNFAILED: Final = frozenset({Outcome.SUCCESS, Outcome.CLIENT_DISCONNECTED})
"""Outcomes that are no failure of the request."""


class Sampled(NamedTuple):
    """The columns of a row that are read here; times in milliseconds."""

    occurred_at: datetime
    outcome: str
    first_token_ms: int
    duration_ms: int
    api_key_id: UUID
    model_identifier: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of successful requests, in milliseconds (nearest rank)."""

    p50: int
    p95: int


@dataclass(frozen=True, slots=True)
class Health:
    """``since``: the time of the oldest row read when older ones of the period were left out."""

    requests: int
    failed: int
    disconnected: int
    first_token: Latency | None
    duration: Latency | None
    since: datetime | None

    @property
    def failed_percent(self) -> float:
        return 100 * self.failed / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class BusiestMinute:
    requests: int
    tokens: int


class Sample:
    """The newest rows of a period."""

    def __init__(
        self, rows: Sequence[Sampled], *, is_whole: bool, reached: datetime | None
    ) -> None:
        self._rows = rows
        self._is_whole = is_whole
        self._reached = reached

    def health(self) -> Health:
        outcomes = Counter(row.outcome for row in self._rows)
        served = [row for row in self._rows if row.outcome == Outcome.SUCCESS]
        return Health(
            requests=len(self._rows),
            failed=sum(count for outcome, count in outcomes.items() if outcome not in UNFAILED),
            disconnected=outcomes[Outcome.CLIENT_DISCONNECTED],
            first_token=latency(row.first_token_ms for row in served),
            duration=latency(row.duration_ms for row in served),
            since=self._since(),
        )

    def _since(self) -> datetime | None:
        if self._is_whole:
            return None
        return self._rows[-1].occurred_at if len(self._rows) == MOST_ROWS else self._reached

    def busiest_minute(
        self, *, api_key_id: UUID | None = None, model: str | None = None
    ) -> BusiestMinute:
        """The most requests, and the most tokens, of one clock minute, of one key or model."""
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


def sample(organization_id: str, period: Period, filters: Filters | None = None) -> Sample:
    """Read the newest rows of ``period``. Raises ``django.db.Error``."""
    filters = filters or Filters()
    rows = UsageRow.objects.filter(
        organization_id=organization_id,
        occurred_at__gte=period.start,
        occurred_at__lt=period.end,
    )
    reached = None
    if filters.model is not None:
        reached = time_reached(rows)
        rows = rows.filter(model_identifier=filters.model)
        if reached is not None:
            rows = rows.filter(occurred_at__gte=reached)
    if filters.api_key_id is not None:
        rows = rows.filter(api_key_id=filters.api_key_id)
    found = [
        Sampled(*columns)
        for columns in rows.order_by("-occurred_at", "-request_id").values_list(
            "occurred_at",
            "outcome",
            "time_to_first_token_ms",
            "total_duration_ms",
            "api_key_id",
            "model_identifier",
            "backend_reported_input_tokens",
            "backend_reported_output_tokens",
        )[: MOST_ROWS + 1]
    ]
    is_whole = len(found) <= MOST_ROWS and reached is None
    return Sample(found[:MOST_ROWS], is_whole=is_whole, reached=reached)


def latency(times: Iterable[int]) -> Latency | None:
    """The percentiles of ``times``; None without any."""
    ordered = sorted(times)
    if not ordered:
        return None
    return Latency(_at(ordered, 50), _at(ordered, 95))


def _at(ordered: Sequence[int], percent: int) -> int:
    """The nearest-rank percentile."""
    return ordered[-(-len(ordered) * percent // 100) - 1]
