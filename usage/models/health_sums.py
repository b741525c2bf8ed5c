"""The sums of how chats ended and how long they took: a column for each outcome and for each bucket of times.

Only a release that knows them adds to these columns. So the requests of a sum are those of its outcomes,
unless an earlier release wrote a part of it (``usage.queries.fill``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Final

from django.db import models

from usage.models.values import Outcome

BOUNDS: Final[tuple[int, ...]] = tuple(
    round(first * 10**power) for power in range(1, 6) for first in (1, 1.6, 2.5, 4, 6.3)
)
"""Where buckets of times end, in milliseconds: five for each power of ten (ISO 3, R5), so each is 1.6 times
as wide as the one before. The last one has no end. They are never changed: sums are stored by them."""

OUTCOME_SUMS: Final[Mapping[str, str]] = {each.value: f"outcome_{each.value}" for each in Outcome}
"""The column of each outcome."""
DURATION_SUMS: Final = tuple(f"duration_{number:02}" for number in range(len(BOUNDS) + 1))
FIRST_TOKEN_SUMS: Final = tuple(f"first_token_{number:02}" for number in range(len(BOUNDS) + 1))
"""The columns of the buckets, of successful requests alone."""
HEALTH_SUMS: Final = (*OUTCOME_SUMS.values(), *DURATION_SUMS, *FIRST_TOKEN_SUMS)


HEALTH_FACTS: Final = ("outcome", "time_to_first_token_ms", "total_duration_ms")
"""The columns of a row that they are made from."""


def columns_of(outcome: str, first_token_ms: int, duration_ms: int) -> tuple[str, ...]:
    """The columns to which a request adds one."""
    if outcome != Outcome.SUCCESS:
        return (OUTCOME_SUMS[outcome],)
    return (
        OUTCOME_SUMS[outcome],
        FIRST_TOKEN_SUMS[bisect_right(BOUNDS, first_token_ms)],
        DURATION_SUMS[bisect_right(BOUNDS, duration_ms)],
    )


def conditions() -> dict[str, str]:
    """For each column, the SQL condition on the rows that add one to it."""
    found = {column: f"\"outcome\" = '{outcome}'" for outcome, column in OUTCOME_SUMS.items()}
    for columns, time in (
        (DURATION_SUMS, "total_duration_ms"),
        (FIRST_TOKEN_SUMS, "time_to_first_token_ms"),
    ):
        for number, column in enumerate(columns):
            parts = [found[OUTCOME_SUMS[Outcome.SUCCESS]]]
            if number:
                parts.append(f'"{time}" >= {BOUNDS[number - 1]}')
            if number < len(BOUNDS):
                parts.append(f'"{time}" < {BOUNDS[number]}')
            found[column] = " AND ".join(parts)
    return {name: found[name] for name in HEALTH_SUMS}


class HealthSums(models.Model):
    """The columns ``HEALTH_SUMS``, beside those of ``ChatSums``."""

    class Meta:
        abstract = True


for _name in HEALTH_SUMS:
    # A plain integer, because the check of a positive one would read the table when the column is added.
    HealthSums.add_to_class(_name, models.IntegerField(db_default=0))
