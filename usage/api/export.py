"""The rows of an organization, as pages and as CSV (inference contract, GET /v1/usage/export).

Rows are ordered by ``occurred_at``, then ``request_id``, which is the index
``usage_by_organization``: a page is one range of it, at any depth; a key's rows are one range of
``usage_by_key``. Raw tuples, no model instances.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from core.errors import ServerOverloaded
from usage.api.export_columns import (
    COLUMN_NAMES,
    EXPORT_COLUMNS,
    SQLITE_LARGE_COST,
    STORED,
    ExportRow,
    cells,
    large_cost,
    postgresql_cell,
    postgresql_csv_cell,
    sqlite_csv_line,
    sqlite_csv_select,
)
from usage.ledger.completeness import Completeness, completeness
from usage.models import UsageRow
from usage.queries.cursors import Cursor
from usage.queries.periods import Period
from usage.queries.selection import Filters, conditions
from usage.queries.snapshot import plan_with

__all__ = ["EXPORT_COLUMNS", "ExportPage", "complete_page", "csv_blocks", "page"]

LONGEST_WAIT_SECONDS = 3.0
"""How long a page waits until no earlier row than its last can appear."""

_LOOK_SECONDS = 0.05

BLOCK_BYTES = 128 * 1024
_BLOCK_ROWS = 500
_TABLE = UsageRow._meta.db_table
_CSV_HEADER = (",".join(COLUMN_NAMES) + "\n").encode()


@dataclass(frozen=True, slots=True)
class ExportPage:
    """``next_cursor`` is the position after the last row, None when no row follows."""

    columns: tuple[str, ...]
    rows: list[ExportRow]
    next_cursor: Cursor | None


@dataclass(frozen=True, slots=True)
class _Selection:
    """The selected rows, as SQL conditions with their parameters."""

    where: str
    parameters: list[Any]

    def select(self, columns: str) -> str:
        # Qualified, because a bare name would refer to the rendered column of the result.
        return (
            f'SELECT {columns} FROM "{_TABLE}" AS stored WHERE {self.where} '  # noqa: S608  # names are ours
            "ORDER BY stored.occurred_at, stored.request_id"
        )


def page(
    organization_id: str, period: Period, filters: Filters, limit: int, after: Cursor | None
) -> ExportPage:
    """Return at most ``limit`` rows of the period that follow ``after``.

    Raises ``django.db.Error``.
    """
    selection = _select(organization_id, period, filters, after)
    rendered = _is_postgresql()
    columns = ", ".join(map(postgresql_cell, EXPORT_COLUMNS) if rendered else STORED)
    with _quick_to_start(), connection.cursor() as cursor:
        cursor.execute(
            f"{selection.select(f'{columns}, stored.occurred_at')} LIMIT %s",
            [*selection.parameters, limit + 1],
        )
        found = cursor.fetchall()
    more = len(found) > limit
    del found[limit:]
    rows: list[ExportRow] = [
        # The last column is the moment for the cursor.
        dict(zip(COLUMN_NAMES, row if rendered else cells(row), strict=False))
        for row in found
    ]
    if not more:
        return ExportPage(COLUMN_NAMES, rows, None)
    moment = found[-1][-1].replace(tzinfo=UTC)
    return ExportPage(COLUMN_NAMES, rows, Cursor(moment, str(rows[-1]["request_id"])))


@contextmanager
def _quick_to_start() -> Iterator[None]:
    """Keep PostgreSQL from compiling the statement."""
    if _is_postgresql():
        with transaction.atomic():
            plan_with(jit="off")
            yield
    else:
        yield


def complete_page(
    organization_id: str, period: Period, filters: Filters, limit: int, after: Cursor | None
) -> ExportPage:
    """Return ``page``, with a cursor that no later row can be stamped before.

    Two writers may commit up to a few ms out of timestamp order. A reader that continued after a
    row of this instant could miss a row that is stamped earlier and committed later. So a page that
    would end among such rows waits until they are complete and is read again; a last page has no
    cursor and never waits. See docs/api/usage-export.md.

    Raises ``ServerOverloaded`` when they are not complete within ``LONGEST_WAIT_SECONDS``: the
    database keeps a writer waiting.
    """
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while True:
        # Read before the page: the page then contains every row before that moment.
        complete = completeness()
        found = page(organization_id, period, filters, limit, after)
        if found.next_cursor is None or _is_settled(found.next_cursor.occurred_at, complete):
            return found
        if time.monotonic() > deadline:
            raise ServerOverloaded("The newest rows are still being written. Try again shortly.")
        time.sleep(_LOOK_SECONDS)


def _is_settled(moment: datetime, complete: Completeness) -> bool:
    """Whether a page that ends at ``moment`` has all rows up to it.

    ``complete`` was read before the page. Rows from the future are not waited for; but only a clock
    that is read after the page tells them from rows that were stamped while it was read.
    """
    if complete.covers(moment):
        return True
    return complete.precedes(moment) and completeness().precedes(moment)


def csv_blocks(
    organization_id: str, period: Period, filters: Filters
) -> Generator[bytes, None, None]:
    """Yield the whole period as CSV, in blocks of about ``BLOCK_BYTES``, from one statement.

    Lines end with LF, on both databases. Raises the database's errors, also in the middle.
    """
    selection = _select(organization_id, period, filters, None)
    yield from _gathered(_copied(selection) if _is_postgresql() else _written(selection))


def _copied(selection: _Selection) -> Generator[bytes, None, None]:
    columns = ", ".join(map(postgresql_csv_cell, EXPORT_COLUMNS))
    copy = f"COPY ({selection.select(columns)}) TO STDOUT (FORMAT csv)"
    with transaction.atomic(), connection.cursor() as cursor:
        # In the order of the index: the first line must not wait for a sort.
        plan_with(enable_sort="off", jit="off", max_parallel_workers_per_gather="0")
        with cursor.copy(copy, selection.parameters) as lines:
            yield _CSV_HEADER
            yield from lines


def _written(selection: _Selection) -> Generator[bytes, None, None]:
    connection.ensure_connection()
    connection.connection.create_function(SQLITE_LARGE_COST, -1, large_cost, deterministic=True)
    with connection.cursor() as cursor:
        cursor.execute(selection.select(sqlite_csv_select()), selection.parameters)
        yield _CSV_HEADER
        line = sqlite_csv_line()
        while rows := cursor.fetchmany(_BLOCK_ROWS):
            yield "".join(map(line, rows)).encode()


def _gathered(pieces: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Join ``pieces`` to blocks of a useful size."""
    block, size = [], 0
    with closing(pieces):
        for piece in pieces:
            block.append(piece)
            size += len(piece)
            if size >= BLOCK_BYTES:
                yield b"".join(block)
                block, size = [], 0
    if block:
        yield b"".join(block)


def _select(
    organization_id: str, period: Period, filters: Filters, after: Cursor | None
) -> _Selection:
    # For a key SQLite would scan the whole organization, because that index needs no sort; a unary
    # plus keeps a column out of its indexes.
    by_key = filters.api_key_id is not None and not _is_postgresql()
    chosen = conditions(organization_id, filters)
    where = [f"+{each}" if by_key and "organization_id" in each else each for each in chosen]
    parameters = [*chosen.values(), _moment(period.end)]
    # Only one lower bound: with two, an index scan may begin at the earlier one.
    if after is not None and after.occurred_at >= period.start:
        lower = "(occurred_at, request_id) > (%s, %s)"
        parameters += [_moment(after.occurred_at), after.request_id]
    else:
        lower = "occurred_at >= %s"
        parameters.append(_moment(period.start))
    return _Selection(" AND ".join([*where, "occurred_at < %s", lower]), parameters)


def _is_postgresql() -> bool:
    return connection.vendor == "postgresql"


def _moment(moment: Any) -> Any:
    return connection.ops.adapt_datetimefield_value(moment)
