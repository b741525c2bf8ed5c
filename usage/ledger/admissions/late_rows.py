"""Rows of processes that were wrongly taken for dead: they replace the rows written for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import msgspec
from django.db import connection, transaction

from svc_project.lib.clock import hour_of
from usage.models import Admission, Outcome
from usage.models.shards import FREE_SHARD
from usage.models.statements import KINDS, POSTGRESQL_HOUR, Tables
from usage.receipts import AnyReceipt

_NO_MORE_REQUESTS: Final = {
    tables: replace(tables, totals={**tables.totals, "requests": "0"}) for tables in KINDS
}
"""The tables with sums that leave out the request itself, which they have counted already."""


def closed_by_others(receipts: Sequence[AnyReceipt]) -> set[str]:
    """Ids of those ``receipts`` whose row another process wrote in place of their own."""
    ids = [receipt.request_id for receipt in receipts]
    found = Admission.objects.filter(request_id__in=ids, closed_at__isnull=False)
    return set(found.values_list("request_id", flat=True))


def replace_interrupted(receipts: Sequence[AnyReceipt]) -> int:
    """Replace by ``receipts`` the rows that were written because their owner was taken for dead.

    Such a row has no counts, so all those of the receipt are added to the sums; ``occurred_at``
    stays. Return how many rows were replaced. Raises ``django.db.Error``.
    """
    closed = closed_by_others(receipts)
    return sum(
        _replace_interrupted(receipt) for receipt in receipts if receipt.request_id in closed
    )


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
        times = list(row.values_list("occurred_at", flat=True))
        if not times or not row.update(**facts):
            return False
        hour = POSTGRESQL_HOUR
        if connection.vendor != "postgresql":
            hour = f"'{connection.ops.adapt_datetimefield_value(hour_of(times[0]))}'"
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
