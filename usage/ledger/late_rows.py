"""Rows that replace earlier ones of their request.

They come from processes that were wrongly taken for dead, and from answers that were withheld because
the reply to their commit was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from django.db import connection, transaction
from django.db.models import F

from core.clock import hour_of
from usage.models import Admission, Outcome, UsageRow, shards
from usage.models.health_sums import HEALTH_FACTS, OUTCOME_SUMS, columns_of
from usage.models.shards import FREE_SHARD
from usage.models.statements import KINDS, POSTGRESQL_HOUR, Adds, Tables, Total
from usage.receipts import AnyReceipt

_NO_MORE_REQUESTS: Final = {
    tables: replace(tables, totals={**tables.totals, "requests": Total(Adds.NOTHING)})
    for tables in KINDS
}
"""The tables with sums that leave out the request itself, which they have counted already."""

_ENDINGS: Final = (
    *("outcome", "http_status", "error_code", "error_type", "close_code"),
    *("delivered_output_tokens", "audio_ms"),
)
"""The columns of both kinds of rows that say how a request ended, and what its client got of the answer:
those that ``usage.receipts.withheld`` changes."""


def closed_by_others(receipts: Sequence[AnyReceipt]) -> set[str]:
    """Ids of those ``receipts`` whose row another process wrote in place of their own."""
    ids = [receipt.request_id for receipt in receipts]
    found = Admission.objects.filter(request_id__in=ids, closed_at__isnull=False)
    return set(found.values_list("request_id", flat=True))


def committed_as_success(receipts: Sequence[AnyReceipt]) -> set[str]:
    """Ids of those ``receipts`` whose answer was withheld although their row was committed.

    The reply to the commit was lost, and then neither the database nor the journal took the row. Raises
    ``django.db.Error``.
    """
    found: set[str] = set()
    for tables in KINDS:
        ids = [
            receipt.request_id
            for receipt in receipts
            if type(receipt) is tables.receipt and receipt.outcome == Outcome.INTERNAL_ERROR
        ]
        if ids:
            successes = tables.rows._default_manager.filter(
                request_id__in=ids, outcome=Outcome.SUCCESS
            )
            found.update(successes.values_list("request_id", flat=True))
    return found


def replace_earlier(receipts: Sequence[AnyReceipt]) -> int:
    """Replace by ``receipts`` the rows that were written because their owner was taken for dead.

    Such a row has no counts, so all those of the receipt are added to the sums; ``occurred_at``
    stays. Rows that say ``success`` of an answer that was withheld say then how it really ended and what
    was delivered, which leaves the sums too; what the backend reported stays. Return how many rows
    changed. Raises ``django.db.Error``.
    """
    closed, committed = closed_by_others(receipts), committed_as_success(receipts)
    return sum(
        _replace_interrupted(receipt)
        if receipt.request_id in closed
        else receipt.request_id in committed and _correct(receipt)
        for receipt in receipts
    )


def _correct(receipt: AnyReceipt) -> bool:
    tables = next(tables for tables in KINDS if tables.receipt is type(receipt))
    facts = msgspec.structs.asdict(receipt)
    facts = {name: facts[name] for name in _ENDINGS if name in facts}
    with transaction.atomic():
        rows = tables.rows._default_manager.filter(
            request_id=receipt.request_id,
            organization_id=receipt.organization_id,
            outcome=Outcome.SUCCESS,
        )
        before = rows.select_for_update().first()
        if before is None:
            return False
        rows.update(**facts)
        for name in tables.summed.intersection(facts):
            _take_from_sums(tables, before, name, getattr(before, name) - facts[name])
        if isinstance(before, UsageRow):
            # A success adds to the buckets of times too, another outcome does not.
            for name in columns_of(*(getattr(before, each) for each in HEALTH_FACTS)):
                _take_from_sums(tables, before, name, 1)
            _take_from_sums(tables, before, OUTCOME_SUMS[facts["outcome"]], -1)
    return True


def _take_from_sums(tables: Tables, row: Any, name: str, amount: int) -> None:
    """Subtract ``amount`` from the sum ``name`` that contains ``row``; no shard falls below zero.

    A negative amount is added.
    """
    if not amount:
        return
    key = {
        each: hour_of(row.occurred_at) if each == "hour" else getattr(row, each)
        for each in tables.key
    }
    sums = tables.sums._default_manager.filter(**key)
    if tables.sharded:
        shards.postpone_merging()
        sums = sums.order_by("shard")
    for each in sums.select_for_update():
        part = min(amount, getattr(each, name))
        sums.filter(pk=each.pk).update(**{name: F(name) - part})
        amount -= part


def _replace_interrupted(receipt: AnyReceipt) -> bool:
    tables = next(tables for tables in KINDS if tables.receipt is type(receipt))
    facts = msgspec.structs.asdict(receipt)
    with transaction.atomic():
        closed = Admission.objects.filter(request_id=receipt.request_id, closed_at__isnull=False)
        if not closed.delete()[0]:
            return False
        row = tables.rows._default_manager.filter(
            request_id=facts.pop("request_id"), outcome=Outcome.INTERRUPTED
        )
        before: Any = row.first()
        if before is None or not row.update(**facts):
            return False
        if isinstance(before, UsageRow):
            _take_from_sums(tables, before, OUTCOME_SUMS[Outcome.INTERRUPTED], 1)
        hour = POSTGRESQL_HOUR
        if connection.vendor != "postgresql":
            hour = f"'{connection.ops.adapt_datetimefield_value(hour_of(before.occurred_at))}'"
        _add_to_sums(tables, receipt.request_id, hour)
    return True


def _add_to_sums(tables: Tables, request_id: str, hour: str) -> None:
    row = f'(SELECT * FROM "{tables.row_table}" WHERE request_id = %s) AS amended'  # noqa: S608
    shard = FREE_SHARD if tables.sharded and connection.vendor == "postgresql" else "0"
    with connection.cursor() as cursor:
        cursor.execute(
            _NO_MORE_REQUESTS[tables].add_to_sums(row, hour=hour, shard=shard),
            [request_id],
        )
