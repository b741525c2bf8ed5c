"""A disk that takes no records: known from the start, in words of its own, without flapping readiness."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.errors import InternalError, ServerOverloaded
from tests.support.builders.receipts import admitted, receipt
from tests.support.ledger.ledgers import break_journal, repair_journal, running_ledger
from tests.support.until import until_async
from tests.usage.ledger.journal.test_journal import no_file_beyond
from usage.ledger import ledger as ledger_module
from usage.ledger.journal.journal import Journal

pytestmark = pytest.mark.django_db(transaction=True)

ROOM = 1_000_000


def test_room_for_an_empty_record_alone_is_no_working_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = Journal(tmp_path, ROOM)
    journal.admitted(admitted())
    with no_file_beyond(journal.size + 100):
        for _ in range(5):
            with pytest.raises(OSError, match="journal"):
                journal.admitted(admitted())
            assert not journal.accepts_records()
    assert journal.accepts_records()
    journal.close()

    assert [each.getMessage() for each in caplog.records if "journal" in each.getMessage()] == [
        "journal: cannot write records: the journal took only a part of a record",
        "journal: can write records again",
    ]


async def test_a_directory_that_takes_nothing_is_known_before_the_first_request(
    journal_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        await ledger.start()
        assert not ledger.state.journal_works
        assert "journal: cannot write records: [Errno" in caplog.text
        assert ledger.accepts_rows(), "the database takes them"


async def test_without_any_place_a_request_is_told_so_and_readiness_returns_late(
    journal_directory: Path, full_database: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_UNREADY_SECONDS", 0.5)
    break_journal(journal_directory)
    async with running_ledger() as ledger:
        unnoted = receipt()
        await ledger.admit_durably(unnoted)
        full_database["full"] = True
        with pytest.raises(InternalError):
            await ledger.record(unnoted)
        await until_async(lambda: not ledger.accepts_rows())

        with pytest.raises(ServerOverloaded) as refused:
            await ledger.admit_durably(admitted())
        assert refused.value.message == (
            "Usage cannot be recorded at the moment, so no request is taken. Try again shortly."
        )
        assert refused.value.code == "server_overloaded"

        repair_journal(journal_directory)
        repaired = time.monotonic()
        await ledger.admit_durably(admitted())  # it is served at once
        assert not ledger.accepts_rows(), "a load balancer waits"
        await until_async(ledger.accepts_rows)
        assert time.monotonic() - repaired > 0.4
        full_database["full"] = False
