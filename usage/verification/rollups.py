"""Verification of the ledger: sums and costs are computed again from the rows and compared.

The database adds up a step of the ledger at a time, with another statement than the one that writes
the sums; each step is one snapshot of the database, and memory holds the sums of one step. The sums of
pruned rows count as if the rows existed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Sum

from core.clock import hour_of, iso_milliseconds, midnight, next_month
from core.money import cost_text, price_of_units, price_text, token_cost
from usage.models import (
    DayWatermark,
    PrunedMonth,
    PrunedSum,
    UsageDay,
    UsageRollup,
)
from usage.models.health_sums import HEALTH_SUMS, OUTCOME_SUMS
from usage.models.statements import CHAT, ROLLUP_KEY, ROLLUP_SUMS, VERIFIED_SUMS, column_list
from usage.queries.snapshot import database_snapshot
from usage.verification import rows, speech, walk
from usage.verification.progress import Progress
from usage.verification.walk import Step

_CHUNK = 2000
_EXACT = Context(prec=80, traps=[Inexact])
_MILLION = Decimal(1000000)
_CURRENCY = ROLLUP_KEY.index("price_currency")
_ZERO = Decimal(0)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
_ROLLUPS, _DAYS = (model._meta.db_table for model in (UsageRollup, UsageDay))


RollupKey = tuple[Any, ...]
Report = Callable[[str], None]
Sums = dict[RollupKey, tuple[int, ...]]


class Verdict(msgspec.Struct):
    """How much was checked and how much differs; ``costs`` are totals by currency."""

    rows: int = 0
    pruned_rows: int = 0
    rollups: int = 0
    speech_rows: int = 0
    speech_days: int = 0
    differences: int = 0
    costs: dict[str, Decimal] = msgspec.field(default_factory=dict)


def verify(
    report: Report, since: datetime | None = None, progress: Progress[Verdict] | None = None
) -> Verdict:
    """Compare everything from the hour of ``since`` on, speech from its day on; report each difference,
    and notes.

    Each step is compared in one snapshot of the database, also while requests end. ``progress`` may
    continue an earlier run that was stopped. Raises ``django.db.Error``.
    """
    progress = progress or Progress("verify_ledger", Verdict(), since)
    verdict = progress.state

    def differ(text: str) -> None:
        verdict.differences += 1
        report(text)

    first = None if since is None else hour_of(since)
    for step in walk.steps(first, progress.begin):
        with database_snapshot():
            _verify_step(step, verdict, differ)
        if step.end is not None:
            progress.reached(step.end)
    day = None if first is None else first.date()
    rows.find_duplicates(differ, first)
    with database_snapshot():
        _compare_days(day or date.min, differ)
        if first is None:
            verdict.pruned_rows = _compare_pruned(differ, report)
        verdict.speech_rows, verdict.speech_days = speech.compare(differ, day)
    progress.ended()
    return verdict


def _verify_step(step: Step, verdict: Verdict, differ: Report) -> None:
    verdict.rows += rows.check(step, differ)
    made, stored = _sums(*walk.made(step)), _sums(*walk.stored(step))
    verdict.rollups += len(stored)
    prices = rows.StampedPrices()
    for key in sorted({*made, *stored}):
        _compare(key, made.get(key), stored.get(key), verdict, differ)
        if key in made and (problem := prices.problem(key)):
            differ(f"{_name(key)}: {problem}")


def _sums(sql: str, parameters: list[Any]) -> Sums:
    """Run a statement of ``usage.verification.walk``; return its sums by key."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return {
            tuple(_plain(value) for value in columns[: len(ROLLUP_KEY)]): tuple(
                map(int, columns[len(ROLLUP_KEY) :])
            )
            for columns in cursor.fetchall()
        }


def _plain(value: Any) -> Any:
    """A part of a key, in the same form for both databases; SQLite may return a moment as text."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def _compare(
    key: RollupKey,
    made: tuple[int, ...] | None,
    stored: tuple[int, ...] | None,
    verdict: Verdict,
    differ: Report,
) -> None:
    name = _name(key)
    if made is None:
        differ(f"{name}: no rows for this roll-up")
        return
    cost = _check_cost(name, key, made, differ)
    currency = key[_CURRENCY]
    verdict.costs[currency] = _EXACT.add(verdict.costs.get(currency, _ZERO), cost)
    if stored is None:
        differ(f"{name}: no roll-up for {made[0]} row(s)")
        return
    verified = VERIFIED_SUMS
    if _has_outcomes(made) and _has_outcomes(stored):
        verified = (*verified, *HEALTH_SUMS)
    for figure, right, found in zip(ROLLUP_SUMS, made, stored, strict=True):
        if right != found and figure in verified:
            differ(f"{name}: {figure} is {found}, the rows say {right}")
    _compare_cost(name, key, stored, cost, differ)


def _has_outcomes(sums: tuple[int, ...]) -> bool:
    """Whether no release without outcomes and times has written a part of the sums."""
    return sums[0] == sum(sums[ROLLUP_SUMS.index(name)] for name in OUTCOME_SUMS.values())


def _compare_cost(
    name: str, key: RollupKey, stored: tuple[int, ...], right: Decimal, differ: Report
) -> None:
    """Compare the cost that a summary computes from a roll-up with the sum of its rows' costs."""
    found = _ZERO
    for _, tokens, price in _products(key, stored):
        found = _EXACT.add(found, token_cost(tokens, price))
    if found != right:
        differ(f"{name}: costs {cost_text(found)}, the rows say {cost_text(right)}")


def _check_cost(name: str, key: RollupKey, made: tuple[int, ...], differ: Report) -> Decimal:
    """The cost of the rows of ``key`` by the contract's formula, implemented apart from ``core.money``.

    All of them have the key's price, so that price times their tokens is the sum of their costs.
    """
    cost = _ZERO
    for kind, tokens, price in _products(key, made):
        product = _EXACT.multiply(Decimal(str(tokens)), Decimal(price_text(price)))
        right = _EXACT.divide(product, _MILLION)
        if (found := token_cost(tokens, price)) != right:
            differ(f"{name}: {kind} costs {cost_text(found)}, recomputed {right}")
        cost = _EXACT.add(cost, right)
    return cost


def _products(key: RollupKey, sums: tuple[int, ...]) -> Iterator[tuple[str, int, Decimal]]:
    """Yield each billed kind of tokens with its sum and its price."""
    named = dict(zip((*ROLLUP_KEY, *ROLLUP_SUMS), (*key, *sums), strict=True))
    for kind in ("input", "output"):
        price = price_of_units(named[f"{kind}_price_per_mtok"])
        yield kind, named[f"backend_reported_{kind}_tokens"], price


def _compare_days(first: date, differ: Report) -> None:
    """Compare the summed days of every organization with its hours."""
    rest = column_list([name for name in CHAT.key if name not in ("organization_id", "hour")])
    day = (
        "(hour AT TIME ZONE 'UTC')::date"
        if connection.vendor == "postgresql"
        else "substr(hour, 1, 10)"
    )
    hours = ", ".join(f"sum({name}) AS {name}" for name in VERIFIED_SUMS)
    negated = ", ".join(f"-{name}" for name in VERIFIED_SUMS)
    differs = " OR ".join(f"sum({name}) <> 0" for name in VERIFIED_SUMS)
    adapt_day, adapt = (
        connection.ops.adapt_datefield_value,
        connection.ops.adapt_datetimefield_value,
    )
    for organization_id, until in DayWatermark.objects.values_list("pk", "until"):
        identity = UsageDay._meta.get_field("organization_id").get_db_prep_value(
            organization_id, connection
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT day, model_identifier FROM ("  # noqa: S608  # names are ours
                f"SELECT {day} AS day, {rest}, {hours}, 1 AS is_made, 0 AS is_stored FROM {_ROLLUPS} "
                f"WHERE organization_id = %s AND hour >= %s AND hour < %s GROUP BY {day}, {rest} "
                f"UNION ALL SELECT day, {rest}, {negated}, 0, 1 FROM {_DAYS} "
                "WHERE organization_id = %s AND day >= %s AND day < %s) AS both_sides "
                f"GROUP BY day, {rest} "
                f"HAVING sum(is_made) <> 1 OR sum(is_stored) <> 1 OR {differs} ORDER BY 1, 2",
                [
                    *(identity, adapt(midnight(first)), adapt(midnight(until))),
                    *(identity, adapt_day(first), adapt_day(until)),
                ],
            )
            for wrong, model_identifier in cursor.fetchall():
                differ(
                    f"{organization_id} {wrong} {model_identifier}: the day is not the sum of its hours"
                )


def _name(key: RollupKey) -> str:
    named = dict(zip(ROLLUP_KEY, key, strict=True))
    organization_id, api_key_id, model_id = (
        uuid.UUID(str(named[name])) for name in ("organization_id", "api_key_id", "model_id")
    )
    return (
        f"{organization_id} {iso_milliseconds(named['hour'])} key {api_key_id} "
        f"{named['model_identifier']} ({model_id}) at "
        f"{price_text(price_of_units(named['input_price_per_mtok']))}/"
        f"{price_text(price_of_units(named['output_price_per_mtok']))} "
        f"{named['price_currency']}"
    )


def _compare_pruned(differ: Report, report: Report) -> int:
    """Compare pruned months with the sums of their rows; return how many rows were pruned.

    An older release archived a row with the month of its id, also one that was settled in a later
    month. Such rows are in summaries and in an archive, and not in the export of their own month.
    Nothing can change that, so it is reported as a note and is no difference. Raises ``django.db.Error``.
    """
    archived = int(PrunedMonth.objects.aggregate(rows=Sum("rows"))["rows"] or 0)
    summed = int(PrunedSum.objects.aggregate(rows=Sum("requests"))["rows"] or 0)
    if archived != summed:
        differ(f"pruned months: {archived} rows in archives, {summed} in the sums of them")
    last = PrunedMonth.objects.order_by("-first").values_list("first", flat=True).first()
    if last is not None:
        end = next_month(midnight(last))
        early = PrunedSum.objects.filter(hour__gte=end).values("hour")
        for hour, rows in (
            early.annotate(rows=Sum("requests")).order_by("hour").values_list("hour", "rows")
        ):
            report(
                f"Note: {iso_milliseconds(hour)}: {rows} row(s) of this hour were archived with an "
                "earlier month by version 0.1.0: summaries count them, the export lacks them"
            )
    return archived
