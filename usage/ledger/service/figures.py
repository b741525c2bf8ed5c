"""The state of a ledger, as probes and metrics show it."""

from __future__ import annotations

import msgspec


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are those of a ledger that has not begun."""

    rows_written: int = 0
    """Rows that this process wrote to the database, each counted once."""
    rows_waiting: int = 0
    """Requests whose answer is held back until their row is durable."""
    rows_owed: int = 0
    """Rows that are in the journal or in memory and not yet in the database."""
    rows_in_memory: int = 0
    """Rows in memory, because neither the database nor the journal accepted them."""
    rows_refused: int = 0
    """Rows of this process that the database refused and that a file keeps."""
    refused_waiting: int = 0
    """Rows in such files of any process: as of the last retry, plus those refused since."""
    unreadable_files: frozenset[str] = frozenset()
    """Files in the journal's directory that the last pass could not adopt."""
    journal_bytes: int = 0
    """Bytes of the journal of this process."""
    journal_works: bool = True
    """Whether the journal accepted its last record."""
    database_answers: bool = True
    """Whether rows go to the database rather than to the journal."""
