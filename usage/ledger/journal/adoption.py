"""Adoption of the files in the journal's directory: segments of dead processes, refused rows.

It runs in steps of some milliseconds, so that the rows of running requests go in between. Each file
is adopted on its own: a broken one does not stop the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from usage.ledger import rows
from usage.ledger.journal import records
from usage.ledger.journal.segments import (
    LIVE,
    REFUSED,
    Orphan,
    Segment,
    abandoned,
    adopt_file,
    remove_unnamed,
)
from usage.receipts import AnyReceipt

log = logging.getLogger(__name__)

SLICE: Final = 200
"""How many rows are written at a time, because others may wait."""

_LOOKED_UP: Final = 500


class AdoptionResult(msgspec.Struct):
    """The result of a pass over the directory.

    ``new``: rows written. ``unreadable``: names of files that could not be opened, locked, read or
    finished. ``refused_rows``: rows that the database still refuses, in files without an owner.
    ``others_admit``: whether other processes have admissions in the database. ``clock_difference``:
    seconds by which this host's clock is ahead of the database's; None when they were not compared.
    """

    new: int = 0
    unreadable: set[str] = set()
    refused_rows: int = 0
    others_admit: bool = False
    clock_difference: float | None = None


class RefusedRows:
    """The file of this process for rows that the database refused. Not thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: Segment | None = None

    def keep(self, receipts: Sequence[AnyReceipt]) -> None:
        """Return when ``receipts`` are on the disk. Raises ``OSError``."""
        if not receipts:
            return
        try:
            if self._file is None:
                self._file = Segment(self._directory, REFUSED)
            for receipt in receipts:
                self._file.append(records.encode("settled", receipt))
            self._file.sync()
        except OSError:
            self.abandon()
            raise
        for receipt in receipts:
            log.critical("ledger: the database refused row %s; a file keeps it", receipt.request_id)

    def abandon(self) -> None:
        """Unlock the file for the next pass of adoption, in this process or in another."""
        if self._file is not None:
            self._file.abandon()
            self._file = None


def adopt(directory: Path, before_statement: rows.BeforeStatement = lambda: None) -> int:
    """Write all rows that other processes left in ``directory``; return how many were missing.

    A request last seen running becomes a row with the outcome ``interrupted`` and its last journaled
    progress. Raises ``django.db.Error`` when the database does not answer; then nothing is lost and
    the next call retries.
    """
    found = AdoptionResult()
    for _ in adopt_in_steps(
        directory, before_statement, RefusedRows(directory), found, refused_too=True
    ):
        pass
    return found.new


def adopt_in_steps(
    directory: Path,
    before_statement: rows.BeforeStatement,
    refused: RefusedRows,
    found: AdoptionResult,
    *,
    refused_too: bool,
) -> Generator[None, None, None]:
    """Adopt the files in ``directory`` step by step; ``found`` holds the result so far.

    Rows that the database refuses go to ``refused``. With ``refused_too``, rows that it refused
    before are retried. Raises ``django.db.Error``.
    """
    remove_unnamed(directory)
    if refused_too:
        refused.abandon()
        yield from _each(
            directory, REFUSED, found, lambda orphan: _retry(orphan, before_statement, found)
        )
    yield from _each(
        directory, LIVE, found, lambda orphan: _adopt(orphan, before_statement, refused, found)
    )


def _each(
    directory: Path,
    suffix: str,
    found: AdoptionResult,
    work: Callable[[Orphan], Generator[None, None, None]],
) -> Generator[None, None, None]:
    for path in abandoned(directory, suffix):
        try:
            orphan = adopt_file(path)
            if orphan is None:
                continue
            try:
                yield from work(orphan)
            finally:
                orphan.close()
        except OSError as error:
            log.error("journal: %s cannot be adopted: %s", path.name, error.strerror or error)
            found.unreadable.add(path.name)


def _adopt(
    orphan: Orphan,
    before_statement: rows.BeforeStatement,
    refused: RefusedRows,
    found: AdoptionResult,
) -> Generator[None, None, None]:
    content = yield from records.read_in_steps(orphan.read())
    if content.newer:
        log.error("journal: a newer version wrote %s; it is left alone", orphan.path.name)
        found.unreadable.add(orphan.path.name)
        return
    closed = 0
    for some in _slices([*content.settled.values(), *content.running.values()], _LOOKED_UP):
        before_statement()
        lacking = rows.missing(some)
        yield
        for part in _slices(lacking, SLICE):
            inserted = _insert(part, before_statement)
            refused.keep(inserted.refused)
            closed += inserted.new
            found.new += inserted.new
            found.refused_rows += len(inserted.refused)
            yield
    orphan.finish(keep=content.damaged)
    if content.damaged:
        log.critical("journal: %s is damaged and was set aside", orphan.path.name)
    if closed:
        log.warning("ledger: %d requests of a dead process were closed", closed)


def _retry(
    orphan: Orphan, before_statement: rows.BeforeStatement, found: AdoptionResult
) -> Generator[None, None, None]:
    """Retry the refused rows of a file; rows that are refused again stay in it."""
    content = yield from records.read_in_steps(orphan.read())
    left = 0
    for some in _slices(content.settled.values(), SLICE):
        try:
            inserted = _insert(some, before_statement)
        except rows.RefusesAllRows:
            left += len(some)
            continue
        left += len(inserted.refused)
        found.new += inserted.new
        still = {receipt.request_id for receipt in inserted.refused}
        if taken := [each.request_id for each in some if each.request_id not in still]:
            orphan.append(records.written(taken))
            log.warning("ledger: %d rows that were refused are written", len(taken))
        yield
    found.refused_rows += left
    if not left and not content.newer:
        orphan.finish(keep=content.damaged)


def _insert(
    receipts: Sequence[AnyReceipt], before_statement: rows.BeforeStatement
) -> rows.Inserted:
    """Write rows, each of which may have an admission in the database, too.

    A row that was admitted in a pruned month may be in its archive, because the process died before
    it noted in the journal that the row was written. The ledger does not know, so it counts as refused: a
    file keeps it for the operator. Call it after the rows were looked up in the ledger.
    """
    before_statement()
    archived = rows.of_pruned_months(receipts)
    rest = [each for each in receipts if each.request_id not in archived]
    ids = {receipt.request_id for receipt in rest}
    inserted = rows.insert_accepted(rest, before_statement, ended=ids)
    inserted.refused += [each for each in receipts if each.request_id in archived]
    return inserted


def _slices(receipts: Iterable[AnyReceipt], size: int) -> Iterator[list[AnyReceipt]]:
    rest = iter(receipts)
    while some := list(islice(rest, size)):
        yield some
