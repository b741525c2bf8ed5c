"""Speech in the ledger after the death of a process and during an outage of the database."""

from __future__ import annotations

import uuid
from pathlib import Path
from zlib import crc32

import pytest

from tests.support.builders.receipts import admitted, speech_admitted
from tests.support.ledger.commands import differences
from usage.ledger.journal.adoption import adopt
from usage.ledger.journal.journal import Journal
from usage.models import SpeechRow, UsageRow
from usage.queries.speech import characters_of
from usage.receipts import SpeechProgress

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_dead_process_leaves_interrupted_rows_with_the_last_journaled_progress(
    journal_directory: Path,
) -> None:
    journal = Journal(journal_directory, 1_000_000)
    for each in ("req_first", "req_second"):
        journal.admitted(speech_admitted(request_id=each))
    journal.admitted(admitted(request_id="req_chat"))
    journal.progress(SpeechProgress("req_first", 20, 1, 1500, 80))
    journal.progress(SpeechProgress("req_first", 45, 2, 3100, 170))
    assert adopt(journal_directory) == 0  # its owner lives
    for segment in journal._segments:
        segment.abandon()

    assert adopt(journal_directory) == 3
    assert adopt(journal_directory) == 0

    found = SpeechRow.objects.values_list(
        "request_id", "outcome", "http_status", "characters", "sentences", "audio_ms", "upstream_ms"
    )
    assert sorted(found) == [
        ("req_first", "interrupted", 500, 45, 2, 3100, 170),
        ("req_second", "interrupted", 500, 0, 0, 0, 0),
    ]
    assert UsageRow.objects.get().outcome == "interrupted"
    assert characters_of(str(uuid.UUID(int=0)), "2026-11-20") == 45
    assert differences() == []


def line(record: str) -> bytes:
    return b"%08x %s\n" % (crc32(record.encode()), record.encode())


CHAT_FACTS = (
    '"organization_id":"00000000-0000-0000-0000-000000000007",'
    '"api_key_id":"00000000-0000-0000-0000-000000000000","model_identifier":"acme/demo-8b",'
    '"model_id":"00000000-0000-0000-0000-000000000000",'
    '"model_version_id":"00000000-0000-0000-0000-000000000000","outcome":"interrupted",'
    '"streamed":true,"shape":"chat","http_status":500,"error_code":"internal_error",'
    '"input_price_per_mtok":"0.15","output_price_per_mtok":"0.60","price_currency":"USD"'
)


def test_a_journal_of_the_version_before_speech_is_still_adopted(journal_directory: Path) -> None:
    journal_directory.mkdir()
    (journal_directory / "1-old.log").write_bytes(
        line(f'{{"admitted":{{"request_id":"req_a",{CHAT_FACTS}}}}}')
        + line(f'{{"admitted":{{"request_id":"req_b",{CHAT_FACTS}}}}}')
        + line('{"progress":["req_a",11,7,0,7,6]}')
        + line(f'{{"settled":{{"request_id":"req_b",{CHAT_FACTS},"delivered_output_tokens":0}}}}')
    )

    assert adopt(journal_directory) == 2

    assert not list(journal_directory.iterdir())
    found = UsageRow.objects.values_list("request_id", "generated_output_tokens")
    assert sorted(found) == [("req_a", 7), ("req_b", 0)]
