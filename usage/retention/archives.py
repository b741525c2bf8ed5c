"""Archives of months: usage rows as Parquet, one file a month, read by DuckDB, Spark or pandas.

Needs pyarrow (``pip install -r requirements-archive.txt``), which no other module does. A file is
written under a temporary name, synced and read back before it is renamed, so a file with its final
name is complete.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import models

from core.fields import PriceField
from core.money import PRICE_DECIMALS, PRICE_DIGITS
from usage.models import UsageRow
from usage.models.statements import SUMMED

BATCH = 20_000
"""Rows that are in memory at once; also the size of the file's row groups."""

COLUMNS = tuple(field.attname for field in UsageRow._meta.local_fields)
_SUMMED_AT = tuple(COLUMNS.index(name) for name in SUMMED)
_PRICES_AT = tuple(
    COLUMNS.index(field.attname)
    for field in UsageRow._meta.local_fields
    if isinstance(field, PriceField)
)


class ArchiveUnusable(Exception):
    """pyarrow is missing, or the file does not contain what was written to it."""


@dataclass(frozen=True, slots=True)
class Content:
    """The totals that an archive must share with its rows.

    ``sums`` are those of ``SUMMED`` and then of the two prices, in units of 10^-8.
    """

    rows: int
    sums: tuple[int, ...]


def write(path: Path, batches: Iterator[Sequence[tuple[Any, ...]]]) -> tuple[Content, str]:
    """Write rows, as tuples of ``COLUMNS``, to ``path``; durable and read back when this returns.

    Return the content and the file's SHA-256 in hex. Raises ``ArchiveUnusable`` or ``OSError``.
    """
    arrow, parquet = _pyarrow()
    part = path.with_name(f".{path.name}.part")
    schema = arrow.schema(
        [
            arrow.field(field.attname, _type(arrow, field), nullable=field.null)
            for field in UsageRow._meta.local_fields
        ]
    )
    rows, sums = 0, [0] * (len(_SUMMED_AT) + len(_PRICES_AT))
    with parquet.ParquetWriter(part, schema, compression="zstd") as writer:
        for batch in batches:
            columns = [list(column) for column in zip(*batch, strict=True)]
            rows += len(batch)
            for number, at in enumerate(_SUMMED_AT):
                sums[number] += sum(value or 0 for value in columns[at])
            for number, at in enumerate(_PRICES_AT, len(_SUMMED_AT)):
                sums[number] += sum(int(value.scaleb(PRICE_DECIMALS)) for value in columns[at])
            arrays = [
                arrow.array(_plain(field, column), type=schema.field(number).type)
                for number, (field, column) in enumerate(
                    zip(UsageRow._meta.local_fields, columns, strict=True)
                )
            ]
            writer.write_batch(arrow.record_batch(arrays, schema=schema))
    _sync(part)
    written = Content(rows, tuple(sums))
    if read(part) != written:
        raise ArchiveUnusable(f"{part} does not contain what was written to it.")
    digest = sha256(part)
    os.replace(part, path)
    _sync(path.parent)
    return written, digest


def read(path: Path) -> Content:
    """Read the whole file and return its totals. Raises ``ArchiveUnusable`` or ``OSError``."""
    arrow, parquet = _pyarrow()
    names = [*SUMMED, *(COLUMNS[at] for at in _PRICES_AT)]
    rows, sums = 0, [0] * len(names)
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(BATCH):
                rows += batch.num_rows
                for number, name in enumerate(names):
                    total = arrow.compute.sum(batch.column(name)).as_py() or 0
                    scale = 10**PRICE_DECIMALS if name.endswith("_price_per_mtok") else 1
                    sums[number] += int(total * scale)
    except arrow.ArrowException as error:
        raise ArchiveUnusable(f"{path} cannot be read: {error}") from None
    return Content(rows, tuple(sums))


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415  # optional, and needed by one command only
        import pyarrow.compute  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        raise ArchiveUnusable(
            "pyarrow is not installed: pip install -r requirements-archive.txt."
        ) from None
    return pyarrow, pyarrow.parquet


def _type(arrow: Any, field: models.Field[Any, Any]) -> Any:
    """The Arrow type: UUIDs as text, moments in milliseconds, which every reader supports."""
    match field:
        case PriceField():
            return arrow.decimal128(PRICE_DIGITS, PRICE_DECIMALS)
        case models.DateTimeField():
            return arrow.timestamp("ms", tz="UTC")
        case models.BooleanField():
            return arrow.bool_()
        case models.IntegerField():
            return arrow.int64()
        case _:
            return arrow.string()


def _plain(field: models.Field[Any, Any], column: list[Any]) -> list[Any]:
    return list(map(str, column)) if isinstance(field, models.UUIDField) else column


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
