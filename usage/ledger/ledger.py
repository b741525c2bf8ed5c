"""The only writer of usage rows and speech rows.

``admit_durably`` stores a request before it runs: in the local journal, and while that takes no
record, or always with ``SVC_DURABLE_ADMISSIONS``, in the database (``usage.ledger.admissions``).
``record`` returns when its row is durable, and only then may the answer's last bytes leave.

Rows go to the database (``usage.ledger.commits``), and when it does not answer in time to the
journal (``usage.ledger.journal_fallback``). A row that neither accepts stays in memory until one
does; its answer is withheld and nothing is admitted meanwhile, so nothing is ever served unmetered.
See docs/explain/metering.md.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

import msgspec
from django.conf import settings
from django.db import connection

from core.errors import ServerOverloaded
from usage.ledger.admissions import not_recordable
from usage.ledger.commits import GroupCommit
from usage.ledger.journal.journal import Journal
from usage.ledger.journal_fallback import Waiting
from usage.receipts import AnyProgress, AnyReceipt

_UNREADY_SECONDS: Final = 5.0
"""How long rows must find a place again until the process is ready. A disk that is nearly full takes some
records and refuses others, and a load balancer should not follow each of them."""
_SETTLE_SECONDS: Final = 1.0
"""How long ``close`` waits for requests that are still being settled."""


class LedgerState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a ledger, as probes and metrics show it.

    The defaults are those of a ledger that has not begun.
    """

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
    clock_difference: float | None = None
    """Seconds by which this host's clock is ahead of the database's; None on SQLite."""


class Ledger:
    """Begins with ``start``, or with the first request, in the event loop of that moment; all
    methods belong to that loop. It can be started again after ``close``.

    After ``close`` nothing is admitted, and the row of a request that ends later is still written.
    """

    def __init__(self) -> None:
        self._commits: GroupCommit | None = None
        self._unready_until = 0.0

    async def start(self) -> None:
        """Start the writer and adopt the journal files of dead processes; does nothing when it
        already runs."""
        if self._commits is None or self._commits.is_closed:
            self._commits = _group_commit()
            self._commits.fallback.journal.try_disk()

    async def close(self) -> None:
        """Write the waiting rows and stop the writer; the journal keeps rows that failed."""
        commits = self._commits
        if commits is None or commits.is_closed:
            return
        commits.withdraw()
        deadline = time.monotonic() + _SETTLE_SECONDS
        await _until_nothing_is_held(commits)
        # Aborted requests are settled concurrently.
        while _is_settling(commits) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await _until_nothing_is_held(commits)
        await commits.close()

    @property
    def state(self) -> LedgerState:
        """The state of this ledger, for probes and metrics."""
        commits = self._commits
        if commits is None:
            return LedgerState()
        fallback, adoption = commits.fallback, commits.adoption
        return LedgerState(
            rows_written=commits.rows_written + adoption.rows_written,
            rows_waiting=len(commits.unfinished),
            rows_owed=fallback.rows_owed,
            rows_in_memory=fallback.rows_in_memory,
            rows_refused=commits.rows_refused,
            refused_waiting=adoption.refused_waiting,
            unreadable_files=adoption.unreadable_files,
            journal_bytes=fallback.journal.size,
            journal_works=fallback.journal.works,
            database_answers=commits.database_answers,
            clock_difference=adoption.clock_difference,
        )

    def accepts_rows(self) -> bool:
        """Whether rows can be made durable, and could for some seconds; tries the disk when the
        database is away."""
        if not self._has_place():
            self._unready_until = time.monotonic() + _UNREADY_SECONDS
        return time.monotonic() >= self._unready_until

    def _has_place(self) -> bool:
        commits = self._commits
        if commits is None:
            return True
        if commits.fallback.is_full:
            return False
        if commits.database_answers:
            return True
        return not commits.admissions.is_always_used and commits.fallback.journal.accepts_records()

    async def admit_durably(self, receipt: AnyReceipt) -> None:
        """Store an admitted request, as the row it becomes if this process dies.

        In the journal; in the database when the journal takes no record, and in both with
        ``SVC_DURABLE_ADMISSIONS``. Raises ``ServerOverloaded`` when it can be stored nowhere: the
        request must not be dispatched.
        """
        commits = self._begun()
        journal = commits.fallback.journal
        if commits.fallback.is_full:
            raise self._refused()
        if commits.admissions.is_always_used:
            await self._commit_admission(commits, receipt)
            with suppress(OSError):  # the database has it; the journal only adds progress
                journal.admitted(receipt)
            return
        try:
            await journal.admit(receipt)
        except OSError:
            await self._commit_admission(commits, receipt)

    async def _commit_admission(self, commits: GroupCommit, receipt: AnyReceipt) -> None:
        if commits.is_away or commits.is_closed:
            raise self._refused()
        await commits.admissions.commit(receipt)

    def _refused(self) -> ServerOverloaded:
        self._unready_until = time.monotonic() + _UNREADY_SECONDS
        return not_recordable()

    def progress(self, progress: AnyProgress) -> None:
        """Journal the progress of a running request."""
        self._begun().fallback.journal.progress(progress)

    async def record(self, receipt: AnyReceipt, *, begun: bool | None = None) -> None:
        """Return when the row of ``receipt`` is durable.

        ``begun``: whether the client has received the beginning of its answer; by default a streamed
        answer has begun.

        The row is written even when the caller is cancelled while it waits, and when the ledger has
        been closed. Raises ``InternalError`` when the row could not be stored anywhere; the answer
        must then be withheld, and the row says so (``usage.receipts.withheld``).
        """
        commits = self._begun()
        made = asyncio.get_running_loop().create_future
        entry = Waiting(receipt, made(), made(), begun)
        if commits.is_closed:
            await commits.write_late(entry)
            return
        commits.add(entry)
        await entry.answer

    def _begun(self) -> GroupCommit:
        if self._commits is None:
            self._commits = _group_commit()
        return self._commits


def _group_commit() -> GroupCommit:
    """Begin the commits of one process, in the running event loop."""
    journal = Journal(settings.SVC_DATA_DIR / "journal", settings.SVC_JOURNAL_MAX_BYTES)
    admits_always = settings.SVC_DURABLE_ADMISSIONS and connection.vendor == "postgresql"
    return GroupCommit(journal, admits_always=admits_always)


def _is_settling(commits: GroupCommit) -> bool:
    return bool(commits.fallback.journal.running or commits.admissions.running)


async def _until_nothing_is_held(commits: GroupCommit) -> None:
    while held := [entry.durable for entry in commits.unfinished if not entry.durable.done()]:
        await asyncio.wait(held)


ledger = Ledger()
"""The running ledger of one process."""
