"""Speech in the ledger after the death of a process and during an outage of the database."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from pathlib import Path
from zlib import crc32

import pytest

from tests.support.live import ROOT
from usage.ledger.journal.adoption import adopt
from usage.models import SpeechRow, UsageRow
from usage.queries.speech import characters_of
from usage.verification.rollups import verify

pytestmark = pytest.mark.django_db(transaction=True)


DIES_SPEAKING = """
import asyncio, sys
import django
django.setup()
from tests.support.builders.receipts import admitted, speech_admitted
from usage.ledger.journal.journal import Journal
from usage.ledger.ledger import Ledger
from usage.receipts import AnyReceipt, SpeechProgress
from django.conf import settings
import pathlib
settings.SVC_DATA_DIR = pathlib.Path(sys.argv[1])

async def main():
    ledger = Ledger()
    await ledger.start()
    first, second = speech_admitted(request_id="req_first"), speech_admitted(request_id="req_second")
    for each in (first, second, admitted(request_id="req_chat")):
        await ledger.admit_durably(each)
    ledger.progress(SpeechProgress("req_first", 20, 1, 1500, 80))
    ledger.progress(SpeechProgress("req_first", 45, 2, 3100, 170))
    print("noted", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


def test_a_killed_process_leaves_interrupted_rows_with_the_last_journaled_progress(
    tmp_path: Path, journal_directory: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DIES_SPEAKING, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"noted\n"
    assert adopt(journal_directory) == 0  # its owner lives
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

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
    differences: list[str] = []
    verify(differences.append)
    assert differences == []


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
