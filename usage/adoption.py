"""Adopting what others left in the journal's directory: dead processes' segments, refused rows.

In steps of some milliseconds, so that the rows of living requests go in between. Each file is
adopted on its own: what is wrong with one holds up no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from usage import batches, records
from usage.receipts import AnyReceipt
from usage.segments import (
    LIVE,
    REFUSED,
    Orphan,
    Segment,
    abandoned,
    adopt_file,
    remove_unnamed,
)

log = logging.getLogger(__name__)

SLICE: Final = 200
"""Rows that are written at a time while others may wait."""

LONGEST_REQUEST_MS: Final = 7 * 24 * 60 * 60 * 1000
"""No request runs longer. One that was admitted so long before its process last noted another had
ended by then: its row was in the database, and if it is not there now, somebody deleted it."""

_LOOKED_UP: Final = 500
_ID_TIME: Final = slice(4, 16)


class Found(msgspec.Struct):
    """What a pass over the directory came to.

    ``unreadable``: files that could not be opened, locked, read or finished, by name.
    ``refused_rows``: rows that the database refuses still, in files that nobody else holds.
    """

    new: int = 0
    unreadable: set[str] = set()
    refused_rows: int = 0


class RefusedRows:
    """The file of this process for rows that the database refused. For one thread."""

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
                self._file.append(records.noted("settled", receipt))
            self._file.sync()
        except OSError:
            self.let_go()
            raise
        for receipt in receipts:
            log.critical("ledger: row %s is refused by the database, kept", receipt.request_id)

    def let_go(self) -> None:
        """Leave the file to the next pass of adoption, in this process or in another."""
        if self._file is not None:
            self._file.let_go()
            self._file = None


def adopt(directory: Path, asking: batches.Asking = lambda: None) -> int:
    """Write all rows that others left in ``directory``; returns how many were missing.

    A request last seen running becomes a row with the outcome ``interrupted`` and the figures
    last noted. Raises ``django.db.Error`` when the database does not answer; then nothing is lost
    and the next call tries again.
    """
    found = Found()
    for _ in adopt_in_steps(directory, asking, RefusedRows(directory), found, refused_too=True):
        pass
    return found.new


def adopt_in_steps(
    directory: Path,
    asking: batches.Asking,
    refused: RefusedRows,
    found: Found,
    *,
    refused_too: bool,
) -> Generator[None, None, None]:
    """Adopt what is in ``directory``, a step each time; ``found`` says what it came to so far.

    Rows that the database refuses go to ``refused``. With ``refused_too``, those that it refused
    before are tried again. Raises ``django.db.Error``.
    """
    remove_unnamed(directory)
    if refused_too:
        refused.let_go()
        yield from _each(directory, REFUSED, found, lambda orphan: _retry(orphan, asking, found))
    yield from _each(directory, LIVE, found, lambda orphan: _adopt(orphan, asking, refused, found))


def _each(
    directory: Path,
    suffix: str,
    found: Found,
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
    orphan: Orphan, asking: batches.Asking, refused: RefusedRows, found: Found
) -> Generator[None, None, None]:
    said = yield from records.read_in_steps(orphan.read())
    if said.newer:
        log.error("journal: %s is of a newer version and is left to it", orphan.path.name)
        found.unreadable.add(orphan.path.name)
        return
    running = [each for each in said.running.values() if not _ended_long_ago(each, said.newest)]
    if dropped := len(said.running) - len(running):
        log.warning("journal: %d admissions are too old to have been running", dropped)
    closed = 0
    for some in _slices([*said.settled.values(), *running], _LOOKED_UP):
        asking()
        lacking = batches.missing(some)
        yield
        for rows in _slices(lacking, SLICE):
            inserted = batches.insert(rows, asking)
            refused.keep(inserted.refused)
            closed += inserted.new
            found.new += inserted.new
            found.refused_rows += len(inserted.refused)
            yield
    orphan.finish(keep=said.damaged)
    if said.damaged:
        log.critical("journal: %s is damaged and was set aside", orphan.path.name)
    if closed:
        log.warning("ledger: %d requests of a dead process were closed", closed)


def _retry(orphan: Orphan, asking: batches.Asking, found: Found) -> Generator[None, None, None]:
    """Offer the rows of a file that were refused once more; those that are still stay in it."""
    said = yield from records.read_in_steps(orphan.read())
    left = 0
    for some in _slices(said.settled.values(), SLICE):
        try:
            inserted = batches.insert(some, asking)
        except batches.TakesNoRows:
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
    if not left and not said.newer:
        orphan.finish(keep=said.damaged)


def _ended_long_ago(receipt: AnyReceipt, newest: str) -> bool:
    try:
        admitted, last = int(receipt.request_id[_ID_TIME], 16), int(newest[_ID_TIME], 16)
    except ValueError:
        return False
    return last - admitted > LONGEST_REQUEST_MS


def _slices(receipts: Iterable[AnyReceipt], size: int) -> Iterator[list[AnyReceipt]]:
    rest = iter(receipts)
    while some := list(islice(rest, size)):
        yield some
