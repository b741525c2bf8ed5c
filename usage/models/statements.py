"""The ledger's tables, a pair for each kind of receipt: its rows, and their sums.

Shared by ``usage.ledger.rows``, ``usage.verification.rebuild`` and ``usage.verification.rollups``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from django.db import models

from core.fields import PriceField
from usage.models import SpeechDay, SpeechRow, UsageRollup, UsageRow
from usage.models.health_sums import HEALTH_SUMS, conditions
from usage.receipts import Receipt, SpeechReceipt

POSTGRESQL_HOUR = "date_trunc('hour', occurred_at, 'UTC')"


def column_list(names: Sequence[str]) -> str:
    """Column names, quoted and joined for SQL."""
    return ", ".join(f'"{name}"' for name in names)


class Adds(Enum):
    """What a row adds to one column of the sums."""

    ONE = "count(*)"
    VALUE = 'coalesce(sum("{column}"), 0)'
    ONE_IF_KNOWN = 'count("{column}")'
    """One, unless the value is null."""
    VALUE_IF_KNOWN = 'coalesce(sum(CASE WHEN "{known}" IS NULL THEN 0 ELSE "{column}" END), 0)'
    """The value of one column, unless another one is null."""
    ONE_IF = "count(CASE WHEN {condition} THEN 1 END)"
    """One where a condition on the row holds."""
    NOTHING = "0"


@dataclass(frozen=True)
class Total:
    """One column of the sums; ``column`` is that of the rows which it reads, if any.

    ``known``: the column that must not be null for ``VALUE_IF_KNOWN``; ``condition``: SQL for ``ONE_IF``.
    """

    adds: Adds
    column: str = ""
    known: str = ""
    condition: str = ""

    @property
    def sql(self) -> str:
        """The aggregate over rows."""
        return self.adds.value.format(
            column=self.column, known=self.known, condition=self.condition
        )

    @property
    def of_row(self) -> str:
        """What one row adds: an aggregate of a single row, without the aggregate."""
        match self.adds:
            case Adds.ONE:
                return "1"
            case Adds.VALUE:
                return f'coalesce("{self.column}", 0)'
            case Adds.ONE_IF_KNOWN:
                return f'CASE WHEN "{self.column}" IS NULL THEN 0 ELSE 1 END'
            case Adds.VALUE_IF_KNOWN:
                return f'CASE WHEN "{self.known}" IS NULL THEN 0 ELSE "{self.column}" END'
            case Adds.ONE_IF:
                return f"CASE WHEN {self.condition} THEN 1 ELSE 0 END"
            case Adds.NOTHING:
                return "0"


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of one kind of receipt: one row each, and the sums of their ``key``.

    Every column of the rows but ``occurred_at`` is a member of the receipt. A column of the key is
    a column of the rows, except ``hour``, that of ``occurred_at``. ``totals`` are the other columns
    of the sums. ``identity``: the unique key used by ``ON CONFLICT`` on PostgreSQL. ``sharded``: a
    key may have several rows of sums, one per ``shard``, to be added up (``usage.models.shards``);
    on SQLite every shard is 0.
    """

    receipt: type[Any]
    rows: type[models.Model]
    sums: type[models.Model]
    identity: tuple[str, ...]
    key: tuple[str, ...]
    totals: Mapping[str, Total]
    sharded: bool = False

    @property
    def row_table(self) -> str:
        return self.rows._meta.db_table

    @property
    def sum_table(self) -> str:
        return self.sums._meta.db_table

    @cached_property
    def columns(self) -> list[str]:
        return [field.attname for field in self.rows._meta.local_fields]

    @cached_property
    def receipt_columns(self) -> list[str]:
        return [name for name in self.columns if name != "occurred_at"]

    @cached_property
    def receipt_values(self) -> Callable[[Any], tuple[Any, ...]]:
        """Reads ``receipt_columns`` from a receipt."""
        return attrgetter(*self.receipt_columns)

    @cached_property
    def uuid_columns(self) -> list[str]:
        return self._columns_of(models.UUIDField)

    @cached_property
    def price_columns(self) -> list[str]:
        return self._columns_of(PriceField)

    @cached_property
    def summed(self) -> frozenset[str]:
        """The columns of the rows whose values ``totals`` add up."""
        return frozenset(each.column for each in self.totals.values() if each.adds is Adds.VALUE)

    def _columns_of(self, kind: type[Any]) -> list[str]:
        return [field.attname for field in self.rows._meta.local_fields if isinstance(field, kind)]

    def add_to_sums(self, source: str, hour: str = POSTGRESQL_HOUR, shard: str = "0") -> str:
        """SQL that adds the sums of the rows in ``source`` to the existing sums.

        ``source``: a table, or the name or text of a query. ``shard``: SQL of the shard that they are
        added to, where there are shards. Sums are locked in the order of their keys, so that two
        writers cannot deadlock.
        """
        return f"{self.insert_sums(source, hour, shard)} {self._add_to_existing}"

    @cached_property
    def add_sums_by_value(self) -> str:
        """SQL that adds sums, given as parameters, to the existing sums: ``sum_columns``."""
        marks = ", ".join("?" * len(self.sum_columns))
        return (
            f'INSERT INTO "{self.sum_table}" ({column_list(self.sum_columns)}) '  # noqa: S608
            f"VALUES ({marks}) {self._add_to_existing}"
        )

    @cached_property
    def sum_columns(self) -> tuple[str, ...]:
        """The columns of the sums."""
        return (*self.key, *self.totals, *(("shard",) if self.sharded else ()))

    @cached_property
    def _add_to_existing(self) -> str:
        key = (*self.key, "shard") if self.sharded else self.key
        add = ", ".join(
            f'"{name}" = "{self.sum_table}"."{name}" + excluded."{name}"' for name in self.totals
        )
        return f"ON CONFLICT ({column_list(key)}) DO UPDATE SET {add}"

    def insert_sums(self, source: str, hour: str = POSTGRESQL_HOUR, shard: str = "0") -> str:
        """SQL that inserts the sums of the rows in ``source``, where no sums exist yet.

        ``hour``: SQL of a row's hour; PostgreSQL's by default. ``shard``: as in ``add_to_sums``.
        """
        keys = ", ".join(hour if name == "hour" else f'"{name}"' for name in self.key)
        numbers = ", ".join(str(number) for number in range(1, len(self.key) + 1))
        values = [keys, *(each.sql for each in self.totals.values())]
        if self.sharded:
            values.append(shard)
        return (
            f'INSERT INTO "{self.sum_table}" ({column_list(self.sum_columns)}) '  # noqa: S608
            f"SELECT {', '.join(values)} "
            f"FROM {source} GROUP BY {numbers} ORDER BY {numbers}"
        )


SUMMED: Final = (
    "backend_reported_input_tokens",
    "backend_reported_output_tokens",
    "backend_reported_reasoning_tokens",
    "generated_output_tokens",
    "delivered_output_tokens",
    "svc_counted_input_tokens",
    "svc_counted_output_tokens",
)
"""The contract's columns of a usage row that its roll-up adds up."""

CHAT: Final = Tables(
    receipt=Receipt,
    rows=UsageRow,
    sums=UsageRollup,
    identity=("request_id", "organization_id"),
    key=tuple(name for field in UsageRollup._meta.pk_fields if (name := field.attname) != "shard"),
    totals={
        "requests": Total(Adds.ONE),
        **{name: Total(Adds.VALUE, name) for name in SUMMED},
        "svc_counted_requests": Total(Adds.ONE_IF_KNOWN, "svc_counted_input_tokens"),
        "cached_input_tokens": Total(Adds.VALUE, "cached_input_tokens"),
        "cache_reported_input_tokens": Total(
            Adds.VALUE_IF_KNOWN, "backend_reported_input_tokens", known="cached_input_tokens"
        ),
        **{name: Total(Adds.ONE_IF, condition=each) for name, each in conditions().items()},
    },
    sharded=True,
)
ROLLUP_KEY: Final = CHAT.key
ROLLUP_SUMS: Final = tuple(CHAT.totals)
SUMMARY_SUMS: Final = tuple(name for name in ROLLUP_SUMS if name not in HEALTH_SUMS)
"""The sums of counts and tokens."""
CACHE_SUMS: Final = ("cached_input_tokens", "cache_reported_input_tokens")
"""The sums that the console shows beside the contract's; the last two of ``SUMMARY_SUMS``.

Release 0.5 merges shards and sums days without them, also while both releases run. So
what is stored may be less than what the rows say, and ``verify_ledger`` does not compare it;
``rebuild_rollups`` corrects it. No cost depends on it.
"""
VERIFIED_SUMS: Final = tuple(name for name in SUMMARY_SUMS if name not in CACHE_SUMS)

SPEECH: Final = Tables(
    receipt=SpeechReceipt,
    rows=SpeechRow,
    sums=SpeechDay,
    identity=("request_id",),
    key=("organization_id", "day"),
    totals={
        "requests": Total(Adds.ONE),
        "characters": Total(Adds.VALUE, "characters"),
        "audio_ms": Total(Adds.VALUE, "audio_ms"),
    },
)

KINDS: Final = (CHAT, SPEECH)
"""In the order in which one transaction writes them."""
