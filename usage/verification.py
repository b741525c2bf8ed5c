"""Proof that the ledger agrees with itself: rows, their sums and costs, computed anew.

Two streams, both by organization and time, are compared hour by hour, so memory holds one hour of
one organization however long the ledger is.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal, Inexact
from itertools import groupby
from operator import add, attrgetter
from typing import Any

from django.db import connection, transaction

from svc_project.lib.clock import hour_of, iso_milliseconds
from svc_project.lib.money import cost_text, price_text, token_cost
from usage import speech_verification
from usage.models import Outcome, Reconciliation, Shape, UsageRollup, UsageRow
from usage.tables import ROLLUP_KEY, ROLLUP_SUMS, SUMMED

_CHUNK = 2000
_EXACT = Context(prec=80, traps=[Inexact])
_MILLION = Decimal("1000000")
_OUTCOMES = frozenset(Outcome.values)
_SHAPES = frozenset(Shape.values)
_RECONCILIATIONS = frozenset({None, *Reconciliation.values})
_NOTHING = (0,) * len(ROLLUP_SUMS)
_ZERO = Decimal(0)
_CURRENCY = ROLLUP_KEY.index("price_currency")
# What a row has of its roll-up's key, behind organization and hour.
_rest_of_key = attrgetter(*ROLLUP_KEY[2:])
_summed = attrgetter(*SUMMED)

RollupKey = tuple[Any, ...]
Report = Callable[[str], None]


@dataclass(slots=True)
class Verdict:
    """What was looked at and how much of it disagrees; ``costs`` are totals by currency."""

    rows: int = 0
    rollups: int = 0
    speech_rows: int = 0
    speech_days: int = 0
    differences: int = 0
    costs: dict[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Hour:
    """The roll-ups of one organization and hour, by their keys; made of rows, or as stored."""

    place: tuple[uuid.UUID, datetime]
    stored: bool
    sums: dict[RollupKey, tuple[int, ...]] = field(default_factory=dict)
    costs: dict[RollupKey, Decimal] = field(default_factory=dict)


def verify(report: Report, since: datetime | None = None) -> Verdict:
    """Compare everything from the hour of ``since`` on, speech from its day on, telling ``report`` of each difference.

    What is compared is one state of the database, also while requests end. Raises
    ``django.db.Error``.
    """
    verdict = Verdict()

    def differ(text: str) -> None:
        verdict.differences += 1
        report(text)

    first = None if since is None else hour_of(since)
    with _one_state():
        hours = heapq.merge(
            _from_rows(first, verdict, differ), _stored(first, verdict), key=attrgetter("place")
        )
        for _, sides in groupby(hours, key=attrgetter("place")):
            _compare({side.stored: side for side in sides}, differ)
        speech = speech_verification.compare(differ, None if first is None else first.date())
        verdict.speech_rows, verdict.speech_days = speech
    return verdict


def _from_rows(first: datetime | None, verdict: Verdict, differ: Report) -> Iterator[_Hour]:
    rows = UsageRow.objects.order_by("organization_id", "occurred_at")
    if first is not None:
        rows = rows.filter(occurred_at__gte=first)
    for place, of_hour in groupby(
        rows.iterator(_CHUNK), key=lambda row: (row.organization_id, hour_of(row.occurred_at))
    ):
        made = _Hour(place, False)
        for row in of_hour:
            verdict.rows += 1
            figures = _figures(row)
            _check_row(row, figures, differ)
            key = (place[0], place[1], *_rest_of_key(row))
            made.sums[key] = tuple(map(add, made.sums.get(key, _NOTHING), figures))
            made.costs[key] = _EXACT.add(made.costs.get(key, _ZERO), _check_cost(row, differ))
        for key, cost in made.costs.items():
            currency = key[_CURRENCY]
            verdict.costs[currency] = _EXACT.add(verdict.costs.get(currency, _ZERO), cost)
        yield made


def _stored(first: datetime | None, verdict: Verdict) -> Iterator[_Hour]:
    rollups = UsageRollup.objects.order_by("organization_id", "hour")
    if first is not None:
        rollups = rollups.filter(hour__gte=first)
    for place, of_hour in groupby(
        rollups.iterator(_CHUNK), key=lambda rollup: (rollup.organization_id, rollup.hour)
    ):
        sums: dict[RollupKey, tuple[int, ...]] = {}
        for rollup in of_hour:
            key = tuple(getattr(rollup, name) for name in ROLLUP_KEY)
            figures = (getattr(rollup, name) for name in ROLLUP_SUMS)
            sums[key] = tuple(map(add, sums.get(key, _NOTHING), figures))
        verdict.rollups += len(sums)
        yield _Hour(place, True, sums)


def _compare(sides: dict[bool, _Hour], differ: Report) -> None:
    made = sides[False].sums if False in sides else {}
    costs = sides[False].costs if False in sides else {}
    stored = sides[True].sums if True in sides else {}
    for key in sorted({*made, *stored}):
        name = _name(key)
        if key not in stored:
            differ(f"{name}: no roll-up for {made[key][0]} row(s)")
        elif key not in made:
            differ(f"{name}: no rows for this roll-up")
        else:
            for figure, right, found in zip(ROLLUP_SUMS, made[key], stored[key], strict=True):
                if right != found:
                    differ(f"{name}: {figure} is {found}, the rows say {right}")
            _compare_cost(name, key, stored[key], costs[key], differ)


def _compare_cost(
    name: str, key: RollupKey, stored: tuple[int, ...], right: Decimal, differ: Report
) -> None:
    """The cost that a summary makes of a roll-up against the sum of its rows' costs."""
    figures = dict(zip((*ROLLUP_KEY, *ROLLUP_SUMS), (*key, *stored), strict=True))
    found = _EXACT.add(
        token_cost(figures["backend_reported_input_tokens"], figures["input_price_per_mtok"]),
        token_cost(figures["backend_reported_output_tokens"], figures["output_price_per_mtok"]),
    )
    if found != right:
        differ(f"{name}: costs {cost_text(found)}, the rows say {cost_text(right)}")


def _check_cost(row: UsageRow, differ: Report) -> Decimal:
    """The row's cost by the contract's formula, written out apart from ``lib.money``."""
    cost = Decimal(0)
    for kind, tokens, price in (
        ("input", row.backend_reported_input_tokens, row.input_price_per_mtok),
        ("output", row.backend_reported_output_tokens, row.output_price_per_mtok),
    ):
        product = _EXACT.multiply(Decimal(str(tokens)), Decimal(price_text(price)))
        right = _EXACT.divide(product, _MILLION)
        if (found := token_cost(tokens, price)) != right:
            differ(f"{row.request_id}: {kind} costs {cost_text(found)}, recomputed {right}")
        cost = _EXACT.add(cost, right)
    return cost


def _check_row(row: UsageRow, figures: tuple[int, ...], differ: Report) -> None:
    counted = (row.svc_counted_input_tokens, row.svc_counted_output_tokens)
    problems = {
        "a figure is negative": min(figures) < 0
        or min(row.input_price_per_mtok, row.output_price_per_mtok) < 0,
        "reasoning tokens exceed output tokens": row.backend_reported_reasoning_tokens
        > row.backend_reported_output_tokens,
        "delivered tokens exceed generated tokens": row.delivered_output_tokens
        > row.generated_output_tokens,
        f"the outcome {row.outcome!r} is not known": row.outcome not in _OUTCOMES,
        f"the shape {row.shape!r} is not known": row.shape not in _SHAPES,
        f"the reconciliation {row.reconciliation!r} is not known": row.reconciliation
        not in _RECONCILIATIONS,
        "only one of the two independent counts is there": counted.count(None) == 1,
    }
    for problem, is_there in problems.items():
        if is_there:
            differ(f"{row.request_id}: {problem}")


def _figures(row: UsageRow) -> tuple[int, ...]:
    """What the row adds to its roll-up, in the order of ``ROLLUP_SUMS``."""
    return (
        1,
        *(figure or 0 for figure in _summed(row)),
        int(row.svc_counted_input_tokens is not None),
    )


def _name(key: RollupKey) -> str:
    named = dict(zip(ROLLUP_KEY, key, strict=True))
    return (
        f"{named['organization_id']} {iso_milliseconds(named['hour'])} key {named['api_key_id']} "
        f"{named['model_identifier']} ({named['model_id']}) at "
        f"{price_text(named['input_price_per_mtok'])}/{price_text(named['output_price_per_mtok'])} "
        f"{named['price_currency']}"
    )


@contextmanager
def _one_state() -> Iterator[None]:
    """Let every statement inside see the database as it is now, without stopping a writer."""
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        # Django would begin IMMEDIATE (settings.DATABASES) and keep the ledger's writer waiting.
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
