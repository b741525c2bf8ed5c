"""The export row, defined once: CSV header, JSON ``columns``, rendering, documentation's table.

Inference contract, "Usage export row". PostgreSQL renders cells itself, so that a CSV row runs no
Python; SQLite returns stored values, which ``cells`` renders. Both give the same text. Prices are
stored as whole units of 10^-8 (``PriceField``), so tokens x units is the cost in whole units of
10^-14: every cost here is an integer until a decimal point is inserted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, auto
from functools import lru_cache
from itertools import groupby
from typing import Any
from uuid import UUID

from core.money import (
    COST_DECIMALS,
    PRICE_DECIMALS,
    price_of_units,
    price_text,
    price_units,
)
from usage.models import UsageRow

Cell = str | int | bool | None
ExportRow = dict[str, Cell]
"""One row by column name, in the order of ``EXPORT_COLUMNS``, ready for JSON."""


class Kind(Enum):
    """How a column is rendered."""

    MOMENT = auto()
    UUID = auto()
    TEXT = auto()
    INTEGER = auto()
    BOOLEAN = auto()
    PRICE = auto()
    COST = auto()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the export; ``shape`` is the contract's word for its content.

    A cost has ``products``: pairs of token and price columns whose products are added up. Every
    other column is stored under its own name.
    """

    name: str
    kind: Kind
    shape: str
    products: tuple[tuple[str, str], ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The stored columns that it is computed from."""
        return tuple(name for pair in self.products for name in pair) or (self.name,)


_INPUT = ("backend_reported_input_tokens", "input_price_per_mtok")
_OUTPUT = ("backend_reported_output_tokens", "output_price_per_mtok")
_NULLABLE = "present, may be null"

EXPORT_COLUMNS: tuple[Column, ...] = (
    Column("occurred_at", Kind.MOMENT, "ISO 8601 UTC timestamp with milliseconds"),
    Column("request_id", Kind.TEXT, "string"),
    Column("organization_id", Kind.UUID, "string"),
    Column("api_key_id", Kind.UUID, "string"),
    Column("model_identifier", Kind.TEXT, "string"),
    Column("model_id", Kind.UUID, "string"),
    Column("model_version_id", Kind.UUID, "string"),
    Column("outcome", Kind.TEXT, "string"),
    Column("streamed", Kind.BOOLEAN, "boolean"),
    Column("shape", Kind.TEXT, "string"),
    Column("http_status", Kind.INTEGER, "integer"),
    Column("error_code", Kind.TEXT, "string or null"),
    Column("backend_reported_input_tokens", Kind.INTEGER, "integer"),
    Column("backend_reported_output_tokens", Kind.INTEGER, "integer"),
    Column("backend_reported_reasoning_tokens", Kind.INTEGER, "integer"),
    Column("generated_output_tokens", Kind.INTEGER, "integer"),
    Column("delivered_output_tokens", Kind.INTEGER, "integer"),
    Column("svc_counted_input_tokens", Kind.INTEGER, "integer or null"),
    Column("svc_counted_output_tokens", Kind.INTEGER, "integer or null"),
    Column("reconciliation", Kind.TEXT, _NULLABLE),
    Column("reconciliation_divergence", Kind.TEXT, _NULLABLE),
    Column("system_fingerprint", Kind.TEXT, _NULLABLE),
    Column("input_price_per_mtok", Kind.PRICE, "decimal string"),
    Column("output_price_per_mtok", Kind.PRICE, "decimal string"),
    Column("price_currency", Kind.TEXT, "string"),
    Column("input_cost", Kind.COST, "decimal string, 14 decimal places", (_INPUT,)),
    Column("output_cost", Kind.COST, "decimal string, 14 decimal places", (_OUTPUT,)),
    Column("total_cost", Kind.COST, "decimal string, 14 decimal places", (_INPUT, _OUTPUT)),
    Column("cost_provisional", Kind.BOOLEAN, "boolean"),
    Column("time_to_first_token_ms", Kind.INTEGER, "integer"),
    Column("total_duration_ms", Kind.INTEGER, "integer"),
)
COLUMN_NAMES = tuple(column.name for column in EXPORT_COLUMNS)

STORED = tuple(dict.fromkeys(name for column in EXPORT_COLUMNS for name in column.sources))
"""The stored columns that ``cells`` expects, in its order."""

_PRICE_UNIT = f"{10**-PRICE_DECIMALS:.{PRICE_DECIMALS}f}"
_COST_UNIT = f"0.{'1':0>{COST_DECIMALS}}"
_WHOLE_CENTS = 10 ** (PRICE_DECIMALS - 2)
_NEVER_QUOTED = frozenset({"outcome", "shape"})
"""Text columns that constraints restrict to plain words."""
_SQLITE_MOST = 2**62
SQLITE_LARGE_COST = "svc_large_cost"
"""The SQL name under which ``large_cost`` must be registered."""


def postgresql_cell(column: Column) -> str:
    """SQL of a JSON cell: text, an integer, a boolean or null."""
    match column.kind:
        case Kind.MOMENT:
            return (
                f"to_char({column.name} AT TIME ZONE 'UTC', "
                """'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
            )
        case Kind.UUID:
            return f"{column.name}::text"
        case Kind.PRICE:
            # No trailing zeros after the second decimal (core.money.price_text).
            units = f"{column.name} * {_PRICE_UNIT}"
            return (
                f"(CASE WHEN mod({column.name}, {_WHOLE_CENTS}) = 0 "
                f"THEN round({units}, 2) ELSE trim_scale({units}) END)::text"
            )
        case Kind.COST:
            # The scale of a numeric product is the sum of its factors': 14, and never an exponent.
            total = " + ".join(f"{tokens} * {price}::numeric" for tokens, price in column.products)
            return f"(({total}) * {_COST_UNIT})::text"
        case _:
            return column.name


def postgresql_csv_cell(column: Column) -> str:
    """SQL of a CSV cell: COPY quotes it where needed and leaves null empty."""
    cell = postgresql_cell(column)
    return f"{cell}::text" if column.kind is Kind.BOOLEAN else cell


def sqlite_csv_select() -> str:
    """SQL of the values that ``sqlite_csv_line`` renders as a line of CSV, on SQLite.

    UUIDs and prices come as stored, because few distinct ones fill many lines; the cells between
    them are one text each. A cost that exceeds a 64-bit integer is left to ``SQLITE_LARGE_COST``.
    """
    parts = []
    for is_kept, columns in _sqlite_parts():
        if is_kept:
            parts += [column.name for column in columns]
        else:
            cells = ", ".join(map(_sqlite_csv_cell, columns))
            parts.append(f"printf('{','.join(['%%s'] * len(columns))}', {cells})")
    return ", ".join(parts)


def sqlite_csv_line() -> Callable[[Sequence[Any]], str]:
    """Return the function that renders a row of ``sqlite_csv_select`` as a line with its end."""
    uuids, prices = lru_cache(4096)(_uuid), lru_cache(4096)(_price)
    renders: list[Callable[[Any], Cell] | None] = []
    for is_kept, columns in _sqlite_parts():
        if is_kept:
            renders += [uuids if each.kind is Kind.UUID else prices for each in columns]
        else:
            renders.append(None)
    kept = [(index, render) for index, render in enumerate(renders) if render is not None]

    def line(row: Sequence[Any]) -> str:
        cells = list(row)
        for index, render in kept:
            cells[index] = render(cells[index])
        return ",".join(cells) + "\n"

    return line


def _sqlite_parts() -> Iterator[tuple[bool, list[Column]]]:
    """Group neighbouring columns: those that are returned as stored, or joined to one text."""
    for is_kept, columns in groupby(
        EXPORT_COLUMNS, key=lambda column: column.kind in (Kind.UUID, Kind.PRICE)
    ):
        yield is_kept, list(columns)


def _sqlite_csv_cell(column: Column) -> str:
    name = column.name
    match column.kind:
        case Kind.MOMENT:
            return f"substr({name}, 1, 10) || 'T' || substr({name} || '.000', 12, 12) || 'Z'"
        case Kind.TEXT if name in _NEVER_QUOTED:
            return name
        case Kind.TEXT:
            special = "'*[\",' || char(10, 13) || ']*'"
            quoted = f"""'"' || replace({name}, '"', '""') || '"'"""
            return f"CASE WHEN {name} GLOB {special} THEN {quoted} ELSE {name} END"
        case Kind.BOOLEAN:
            return f"CASE WHEN {name} THEN 'true' ELSE 'false' END"
        case Kind.COST:
            one = 10**COST_DECIMALS
            total = " + ".join(f"{tokens} * {price}" for tokens, price in column.products)
            fits = " AND ".join(
                f"{tokens} < {_SQLITE_MOST} / ({price} + 1)" for tokens, price in column.products
            )
            factors = ", ".join(f"{tokens}, {price}" for tokens, price in column.products)
            return (
                f"CASE WHEN {fits} "
                f"THEN printf('%%d.%%0{COST_DECIMALS}d', ({total}) / {one}, ({total}) %% {one}) "
                f"ELSE {SQLITE_LARGE_COST}({factors}) END"
            )
        case _:
            return name


def large_cost(*factors: int) -> str:
    """The cost in units, however large, of alternating token counts and prices."""
    return _cost(sum(map(operator.mul, factors[::2], factors[1::2])))


def cells(stored: Sequence[Any]) -> list[Cell]:
    """The JSON cells of a row, from the values of ``STORED`` as SQLite returns them."""
    return [render(stored) for render in _RENDERERS]


def export_row(row: UsageRow) -> ExportRow:
    """``row`` as the export has it."""
    stored = [_as_stored(getattr(row, name)) for name in STORED]
    return dict(zip(COLUMN_NAMES, cells(stored), strict=True))


def _as_stored(value: Any) -> Any:
    """A value of a model's field as SQLite returns it."""
    match value:
        case UUID():
            return value.hex
        case Decimal():
            return price_units(value)
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None)
        case _:
            return value


def _moment(stored: datetime) -> str:
    return f"{stored.isoformat(timespec='milliseconds')}Z"


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _price(units: int) -> str:
    return price_text(price_of_units(units))


def _cost(units: int) -> str:
    whole, fraction = divmod(units, 10**COST_DECIMALS)
    return f"{whole}.{fraction:0{COST_DECIMALS}d}"


_RENDER: dict[Kind, Callable[[Any], Cell]] = {
    Kind.MOMENT: _moment,
    Kind.UUID: _uuid,
    Kind.TEXT: lambda stored: stored,
    Kind.INTEGER: lambda stored: stored,
    Kind.BOOLEAN: bool,
    Kind.PRICE: _price,
}


def _renderer(column: Column) -> Callable[[Sequence[Any]], Cell]:
    if column.kind is Kind.COST:
        pairs = [(STORED.index(tokens), STORED.index(price)) for tokens, price in column.products]
        return lambda stored: _cost(sum(stored[tokens] * stored[price] for tokens, price in pairs))
    index, render = STORED.index(column.name), _RENDER[column.kind]
    return lambda stored: render(stored[index])


_RENDERERS = [_renderer(column) for column in EXPORT_COLUMNS]
