"""The independent token count of a sampled request: the only columns that are set later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from django.db import connection, transaction

from core.clock import hour_of
from usage.models import Reconciliation, UsageRow
from usage.models.shards import FREE_SHARD
from usage.models.statements import CHAT, POSTGRESQL_HOUR, Adds, Total

_COUNTS: Final = replace(
    CHAT,
    totals={
        name: total if name.startswith("svc_counted_") else Total(Adds.NOTHING)
        for name, total in CHAT.totals.items()
    },
)
"""The chat tables with only the sums that an independent count adds to its row's roll-up."""


@dataclass(frozen=True, slots=True)
class IndependentCount:
    """The counts of the gateway's own tokenizer; None where there is no tokenizer."""

    reconciliation: Reconciliation
    input_tokens: int | None = None
    output_tokens: int | None = None
    divergence: str | None = None


def fill_in(request_id: str, count: IndependentCount) -> bool:
    """Add ``count`` to the row and its roll-up, if the row exists and has no count yet.

    Return whether it was added. Raises ``django.db.Error``.
    """
    with transaction.atomic():
        rows = UsageRow.objects.filter(request_id=request_id, reconciliation=None)
        filled = rows.update(
            svc_counted_input_tokens=count.input_tokens,
            svc_counted_output_tokens=count.output_tokens,
            reconciliation=count.reconciliation,
            reconciliation_divergence=count.divergence,
        )
        if filled and count.input_tokens is not None and count.output_tokens is not None:
            _add_to_rollup(UsageRow.objects.get(request_id=request_id))
    return bool(filled)


def _add_to_rollup(row: UsageRow) -> None:
    on_postgresql = connection.vendor == "postgresql"
    counted = f'(SELECT * FROM "{CHAT.row_table}" WHERE request_id = %s) AS counted'  # noqa: S608
    hour = connection.ops.adapt_datetimefield_value(hour_of(row.occurred_at))
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNTS.add_to_sums(
                counted,
                hour=POSTGRESQL_HOUR if on_postgresql else "%s",
                shard=FREE_SHARD if on_postgresql else "0",
            ),
            [row.request_id] if on_postgresql else [hour, row.request_id],
        )
