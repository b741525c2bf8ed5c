"""The only writer of usage rows and speech rows.

``admit_durably`` stores a request before it runs: in the local journal, and while that takes no
record, or always with ``SVC_DURABLE_ADMISSIONS``, in the database (``usage.ledger.admissions``).
``record`` returns when its row is durable, and only then may the answer's last bytes leave.

Rows go to the database (``usage.ledger.service.group_commit``), and when it does not answer in time
to the journal (``usage.ledger.service.journal_fallback``). A row that neither accepts stays in memory
until one does; its answer is withheld and nothing is admitted meanwhile, so nothing is ever served
unmetered. See docs/explain/metering.md.
"""

from __future__ import annotations

from usage.ledger.service.figures import Figures
from usage.ledger.service.running_ledger import RunningLedger
from usage.receipts import AnyProgress, AnyReceipt


class Ledger:
    """Begins with ``start``, or with the first request, in the event loop of that moment; all
    methods belong to that loop. It can be started again after ``close``."""

    def __init__(self) -> None:
        self._running: RunningLedger | None = None

    async def start(self) -> None:
        """Start the writer and adopt the journal files of dead processes; does nothing when it
        already runs."""
        if self._running is None or self._running.is_closed:
            self._running = RunningLedger()

    async def close(self) -> None:
        """Write the waiting rows and stop the writer; the journal keeps rows that failed."""
        if self._running is not None and not self._running.is_closed:
            await self._running.close()

    @property
    def figures(self) -> Figures:
        """The state of this ledger, for probes and metrics."""
        return Figures() if self._running is None else self._running.figures

    def accepts_rows(self) -> bool:
        """Whether a row could be made durable now; tries the disk when the database is away."""
        return self._running is None or self._running.accepts_rows()

    async def admit_durably(self, receipt: AnyReceipt) -> None:
        """Store an admitted request, as the row it becomes if this process dies.

        In the journal; in the database when the journal takes no record, and in both with
        ``SVC_DURABLE_ADMISSIONS``. Raises ``ServerOverloaded`` when it can be stored nowhere: the
        request must not be dispatched.
        """
        await self._begun().admit(receipt)

    def progress(self, progress: AnyProgress) -> None:
        """Journal the progress of a running request."""
        self._begun().progress(progress)

    async def record(self, receipt: AnyReceipt, *, begun: bool | None = None) -> None:
        """Return when the row of ``receipt`` is durable.

        ``begun``: whether the client has received the beginning of its answer; by default a streamed
        answer has begun.

        The row is written even when the caller is cancelled while it waits, and when the ledger has
        been closed. Raises ``InternalError`` when the row could not be stored anywhere; the answer
        must then be withheld, and the row says so (``usage.receipts.withheld``).
        """
        await self._begun().record(receipt, begun)

    def _begun(self) -> RunningLedger:
        if self._running is None:
            self._running = RunningLedger()
        return self._running


ledger = Ledger()
