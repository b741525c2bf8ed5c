"""A ledger whose sums are computed without the product."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accounts.models import ApiKey
from tests.support.builders import traffic
from tests.support.builders.traffic import Written

ALL = "model,api_key,time"


NOVEMBER = {"start": "2026-11-01", "end": "2026-12-01"}


def utc(*numbers: int) -> datetime:
    return datetime(*numbers, tzinfo=UTC)  # type: ignore[arg-type,misc]  # year, month, day, ...


@dataclass(frozen=True)
class Ledger:
    """Mixed traffic of an organization: two keys of its own, one that no longer exists, and no key."""

    written: list[Written]
    first: ApiKey
    second: ApiKey
    departed: str

    @property
    def names(self) -> dict[str, tuple[str | None, str | None]]:
        return {str(key.pk): (key.label, key.prefix) for key in (self.first, self.second)}

    def expected(
        self,
        start: datetime,
        end: datetime,
        bucket: str = "day",
        chosen: Callable[[Written], bool] = lambda _: True,
    ) -> dict[str, Any]:
        """The expected summary with all breakdowns."""
        inside = [each for each in self.written if start <= each.occurred_at < end and chosen(each)]
        return {
            **traffic.figures(inside),
            "breakdowns": {
                "model": traffic.by_model(inside),
                "api_key": traffic.by_key(inside, self.names),
                "time": traffic.by_time(inside, bucket),
            },
        }


def figures_of(answer: Any) -> dict[str, Any]:
    """The part of an answer that ``Ledger.expected`` computes."""
    assert answer.status_code == 200, answer.content
    body = answer.json()
    return {
        name: body[name]
        for name in ("requests", "tokens", "cost", "mixed_currency", "breakdowns")
        if name in body
    }
