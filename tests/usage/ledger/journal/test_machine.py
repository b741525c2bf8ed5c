"""A state machine of the journal's events in any order: no row is lost, doubled or restored."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.support.builders.receipts import (
    admitted,
    progress,
    receipt,
    speech_admitted,
    speech_receipt,
)
from usage.ledger import rows
from usage.ledger.journal import adoption, journal
from usage.ledger.journal.adoption import AdoptionResult, RefusedRows, adopt_in_steps
from usage.ledger.journal.journal import Journal
from usage.receipts import AnyReceipt, SpeechProgress, SpeechReceipt, withheld

ROOM = 10_000_000


class JournalMachine(RuleBasedStateMachine):
    """A process with a journal, a dict as database, and processes that adopt after its death.

    ``due`` is how each request must end in the database: as it was settled last, or interrupted.
    ``deleted`` are rows that the journal knew to be written and that an operator dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="journal-machine-"))
        self.patches: list[Any] = [
            patch.object(journal, "SEGMENT_BYTES", 3000),
            patch.object(adoption, "SLICE", 2),
            patch.object(adoption, "_LOOKED_UP", 3),
            patch.object(rows, "missing", self.missing),
            patch.object(rows, "insert_accepted", self.insert),
            patch.object(rows, "of_pruned_months", lambda receipts: set()),
        ]
        for each in self.patches:
            each.start()
        self.journal = Journal(self.directory, ROOM)
        self.database: dict[str, str] = {}
        self.new: Counter[str] = Counter()
        self.due: dict[str, str] = {}
        self.running: dict[str, AnyReceipt] = {}
        self.known_written: set[str] = set()
        self.deleted: set[str] = set()
        self.kinds = itertools.cycle([False, False, True])

    # -- the database ------------------------------------------------------------------------

    def missing(self, receipts: Sequence[AnyReceipt]) -> list[AnyReceipt]:
        return [each for each in receipts if each.request_id not in self.database]

    def insert(self, receipts: Sequence[AnyReceipt], *_: object, **__: object) -> rows.Inserted:
        new = [each for each in receipts if each.request_id not in self.database]
        for each in new:
            self.database[each.request_id] = each.outcome
            self.new[each.request_id] += 1
        return rows.Inserted(len(new))

    def ask(self) -> None:
        """Called before each statement."""

    # -- actions of a process ----------------------------------------------------------------

    @rule()
    def admit(self) -> None:
        request = speech_admitted() if next(self.kinds) else admitted()
        self.journal.admitted(request)
        self.running[request.request_id] = request
        self.due[request.request_id] = "interrupted"

    @precondition(lambda self: self.running)
    @rule(data=st.data(), tokens=st.integers(0, 99))
    def note_progress(self, data: st.DataObject, tokens: int) -> None:
        request_id = self.pick(data)
        spoken = isinstance(self.running[request_id], SpeechReceipt)
        self.journal.progress(
            SpeechProgress(request_id, tokens, 1, 0, 0) if spoken else progress(request_id, tokens)
        )

    @precondition(lambda self: self.running)
    @rule(data=st.data(), held_back=st.booleans())
    def settle_in_the_journal(self, data: st.DataObject, held_back: bool) -> None:
        ended = self.ended(self.pick(data))
        self.journal.settled(ended)
        if held_back:
            # Both syncs failed: the client got 500.
            self.journal.failed_to_sync(self.journal.settled(ended))
            ended = withheld(ended)
            self.journal.settled(ended)
        self.due[ended.request_id] = ended.outcome

    @precondition(lambda self: self.running)
    @rule(data=st.data(), is_told=st.booleans())
    def write_at_once(self, data: st.DataObject, is_told: bool) -> None:
        """The database accepts the row; ``is_told``: its answer arrives."""
        ended = self.ended(self.pick(data))
        self.due[ended.request_id] = ended.outcome
        self.insert([ended], None)
        if is_told:
            self.tell([ended.request_id])
        else:
            # As when the database answers late: the journal has the row too.
            self.journal.settled(ended)

    @precondition(lambda self: self.journal.owes)
    @rule(count=st.integers(1, 4), is_told=st.booleans())
    def ship(self, count: int, is_told: bool) -> None:
        owed = self.journal.owed(count)
        receipts = [each.read() for each in owed]
        self.insert([each for each in receipts if each is not None], None)
        assert None not in receipts
        if is_told:
            self.tell([each.request_id for each in owed])

    @rule(data=st.data())
    def move_to_end(self, data: st.DataObject) -> None:
        self.journal.move_to_end(self.journal.owed(data.draw(st.integers(0, 3))))

    @precondition(lambda self: self.known_written - self.deleted)
    @rule()
    def drop_a_month(self) -> None:
        """An operator deletes rows that the journal knows to be written."""
        for request_id in self.known_written:
            if self.database.pop(request_id, None) is not None:
                self.deleted.add(request_id)

    @rule()
    def die(self) -> None:
        """Kill the process: its locks are freed, its files stay; another process starts."""
        for segment in self.journal._segments:
            segment.abandon()
        self.running.clear()
        self.journal = Journal(self.directory, ROOM)

    @rule()
    def close(self) -> None:
        """Stop the process in order."""
        self.journal.close()
        self.running.clear()
        self.journal = Journal(self.directory, ROOM)

    @rule(steps=st.integers(1, 12))
    def adopt_and_die(self, steps: int) -> None:
        """Kill the adopting process after some steps."""
        work = self.adoption(AdoptionResult())
        for _ in itertools.islice(work, steps):
            pass
        work.close()

    @rule()
    def adopt(self) -> None:
        for _ in self.adoption(AdoptionResult()):
            pass

    # -- invariants --------------------------------------------------------------------------

    @invariant()
    def nothing_is_doubled_or_brought_back(self) -> None:
        assert all(times == 1 for times in self.new.values())
        assert not self.deleted & self.database.keys()

    @invariant()
    def no_row_lies(self) -> None:
        wrong = {
            request_id: (outcome, self.due[request_id])
            for request_id, outcome in self.database.items()
            if outcome != self.due[request_id]
        }
        assert not wrong

    def teardown(self) -> None:
        try:
            self.die()
            self.adopt()
            assert self.database.keys() | self.deleted == self.due.keys()
            self.nothing_is_doubled_or_brought_back()
            self.no_row_lies()
            self.journal.close()
            assert not list(self.directory.iterdir())
        finally:
            for each in self.patches:
                each.stop()
            shutil.rmtree(self.directory)

    # -- helpers -----------------------------------------------------------------------------

    def pick(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(list(self.running)))

    def ended(self, request_id: str) -> AnyReceipt:
        request = self.running.pop(request_id)
        if isinstance(request, SpeechReceipt):
            return speech_receipt(request_id=request_id)
        return receipt(request_id=request_id)

    def tell(self, request_ids: list[str]) -> None:
        self.journal.written(request_ids)
        self.journal.flush_written()
        self.known_written.update(request_ids)

    def adoption(self, found: AdoptionResult) -> Generator[None, None, None]:
        refused = RefusedRows(self.directory)
        return adopt_in_steps(self.directory, self.ask, refused, found, refused_too=True)


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(
    max_examples=int(os.environ.get("SVC_TEST_MACHINE_EXAMPLES", "100")),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
