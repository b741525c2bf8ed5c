"""Verification of the rows themselves: invalid values, request ids that occur twice, stamped prices."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from core.clock import iso_milliseconds
from core.database.clocks import LARGEST_DIFFERENCE
from core.money import price_of_units
from usage.models import Outcome, Reconciliation, Shape, UsageRow, partitions
from usage.models.statements import ROLLUP_KEY, SUMMED
from usage.verification.walk import Step

StampedPrice = tuple[int, int, str]
"""The price of input and of output, each of a million tokens in units of 10^-8, and the currency."""

PriceHistory = Callable[[], Mapping[uuid.UUID, Mapping[StampedPrice, datetime]]]

price_histories: list[PriceHistory] = []
"""Functions that return every price of each model, by ``model_id``, with the moment at which it first
took effect. The app that knows prices adds its own when Django starts."""

_LONGEST_REQUEST: Final = timedelta(days=7)
_HOUR: Final = timedelta(hours=1)
_CLOCKS: Final = timedelta(seconds=LARGEST_DIFFERENCE)
_ROWS: Final = UsageRow._meta.db_table


def _one_of(values: list[str]) -> str:
    return ", ".join(f"'{value}'" for value in values)


_PROBLEMS = {
    "a figure is negative": " OR ".join(
        f"{name} < 0"
        for name in (
            *SUMMED,
            "input_price_per_mtok",
            "output_price_per_mtok",
            "cached_input_tokens",
        )
    ),
    "reasoning tokens exceed output tokens": "backend_reported_reasoning_tokens > backend_reported_output_tokens",
    "delivered tokens exceed generated tokens": "delivered_output_tokens > generated_output_tokens",
    "cached tokens exceed input tokens": "cached_input_tokens > backend_reported_input_tokens",
    "the outcome {outcome!r} is not known": f"outcome NOT IN ({_one_of(Outcome.values)})",
    "the shape {shape!r} is not known": f"shape NOT IN ({_one_of(Shape.values)})",
    "the reconciliation {reconciliation!r} is not known": f"reconciliation NOT IN ({_one_of(Reconciliation.values)})",
    "only one of the two independent counts is there": "(svc_counted_input_tokens IS NULL) <> (svc_counted_output_tokens IS NULL)",
}
"""Invalid rows, each with its SQL condition, in case the constraints were bypassed."""
_A_PROBLEM = " OR ".join(f"({condition})" for condition in _PROBLEMS.values())


def check(step: Step, differ: Callable[[str], None]) -> int:
    """Report invalid rows of ``step``; return how many rows it has. Raises ``django.db.Error``."""
    where, parameters = step.where("occurred_at")
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*), sum(CASE WHEN {_A_PROBLEM} THEN 1 ELSE 0 END) "  # noqa: S608
            f"FROM {_ROWS} WHERE {where}",
            parameters,
        )
        rows, wrong = cursor.fetchone()
        if wrong:
            flags = ", ".join(
                f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in _PROBLEMS.values()
            )
            cursor.execute(
                f"SELECT request_id, outcome, shape, reconciliation, {flags} FROM {_ROWS} "  # noqa: S608
                f"WHERE {where} AND ({_A_PROBLEM}) ORDER BY request_id",
                parameters,
            )
            for request_id, outcome, shape, reconciliation, *found in cursor.fetchall():
                for problem, is_there in zip(_PROBLEMS, found, strict=True):
                    if is_there:
                        words = problem.format(
                            outcome=outcome, shape=shape, reconciliation=reconciliation
                        )
                        differ(f"{request_id}: {words}")
    return int(rows)


def find_duplicates(differ: Callable[[str], None], since: datetime | None) -> None:
    """Report request ids of several rows; with ``since``, among requests that may have ended later.

    On PostgreSQL the key of a partition holds the organization, too, so the table accepts an id of
    two organizations. The ids are read in the order of that key. Raises ``django.db.Error``.
    """
    if connection.vendor != "postgresql":
        return
    first = "" if since is None else partitions.lower_bound(since - _LONGEST_REQUEST)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT request_id, count(*) FROM {_ROWS} WHERE request_id >= %s "  # noqa: S608
            "GROUP BY request_id HAVING count(*) > 1 ORDER BY request_id",
            [first],
        )
        for request_id, rows in cursor.fetchall():
            differ(f"{request_id}: {rows} rows have this request id")


class StampedPrices:
    """The prices that models have had, to compare with those that are stamped on rows.

    They are read when it is made. A model that no app knows is not compared. Raises
    ``django.db.Error``.
    """

    def __init__(self) -> None:
        self._known: dict[uuid.UUID, Mapping[StampedPrice, datetime]] = {}
        for history in price_histories:
            self._known.update(history())

    def problem(self, key: tuple[Any, ...]) -> str | None:
        """What is wrong with the price of rows of the roll-up ``key``; None when nothing is.

        A row is settled after its admission, so a price that took effect after the hour of the
        settlement was not in force. The host decides the price and the database stamps the row, so
        their clocks may differ by ``LARGEST_DIFFERENCE``. Raises ``django.db.Error``.
        """
        named = dict(zip(ROLLUP_KEY, key, strict=True))
        prices = self._known.get(uuid.UUID(str(named["model_id"])))
        if prices is None:
            return None
        since = prices.get(
            (
                int(named["input_price_per_mtok"]),
                int(named["output_price_per_mtok"]),
                named["price_currency"],
            )
        )
        if since is None:
            return "the model never had this price"
        end = named["hour"] + _HOUR
        if since < end or (since - _CLOCKS < end and not self._has_rows(named, since - _CLOCKS)):
            return None
        return f"this price took effect later, at {iso_milliseconds(since)}"

    @staticmethod
    def _has_rows(named: Mapping[str, Any], end: datetime) -> bool:
        """Whether the roll-up with the key ``named`` has rows that were settled before ``end``."""
        key: dict[str, Any] = {
            name: uuid.UUID(str(value))
            if name.endswith("_id")
            else price_of_units(value)
            if name.endswith("_price_per_mtok")
            else value
            for name, value in named.items()
            if name != "hour"
        }
        settled = {"occurred_at__gte": named["hour"], "occurred_at__lt": end}
        return UsageRow.objects.filter(**key, **settled).exists()
