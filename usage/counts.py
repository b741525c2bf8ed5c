"""The one thing that is added to a row later: the independent count of a sampled request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from django.db import connection, transaction

from svc_project.lib.clock import hour_of
from usage.models import Reconciliation, UsageRow
from usage.shards import FREE_SHARD
from usage.tables import CHAT, POSTGRESQL_HOUR

_COUNTS: Final = replace(
    CHAT,
    totals={
        name: sql if name.startswith("svc_counted_") else "0" for name, sql in CHAT.totals.items()
    },
)
"""What a count adds to the roll-up of its row, which is there already."""


@dataclass(frozen=True, slots=True)
class IndependentCount:
    """What the gateway's own tokenizer found; figures are None where there is no tokenizer."""

    reconciliation: Reconciliation
    input_tokens: int | None = None
    output_tokens: int | None = None
    divergence: str | None = None


def fill_in(request_id: str, count: IndependentCount) -> bool:
    """Add ``count`` to the row and its roll-up, if the row is there and has none yet.

    Returns whether it did. Raises ``django.db.Error``.
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
            _COUNTS.added_up(
                counted,
                hour=POSTGRESQL_HOUR if on_postgresql else "%s",
                shard=FREE_SHARD if on_postgresql else "0",
            ),
            [row.request_id] if on_postgresql else [hour, row.request_id],
        )
