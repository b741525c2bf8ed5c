"""Speech rows and speech days: complete, once and exact, also with concurrent writers."""

from __future__ import annotations

import random
import threading
import uuid
from collections import Counter
from datetime import date

import msgspec
import pytest
from django.db import DataError, IntegrityError, connections

from tests.support.builders.receipts import receipt, speech_receipt
from tests.support.ledger.commands import differences
from usage.ledger import rows
from usage.models import SpeechDay, SpeechOutcome, SpeechRow, UsageRollup, UsageRow
from usage.queries.speech import characters_of
from usage.receipts import SpeechReceipt

ACME = str(uuid.UUID(int=7))
pytestmark = pytest.mark.django_db(transaction=True)


def days(organization_id: str = ACME) -> dict[str, tuple[int, int, int]]:
    """Requests, characters and audio by day."""
    found = SpeechDay.objects.filter(organization_id=organization_id)
    return {str(each.day): (each.requests, each.characters, each.audio_ms) for each in found}


def test_a_row_has_every_fact_of_its_receipt() -> None:
    written = speech_receipt(
        organization_id=ACME,
        api_key_id=str(uuid.uuid4()),
        voice="voice_0123",
        cloned=True,
        transport="websocket",
        outcome="backend_timeout",
        http_status=101,
        error_type="proxy_error",
        close_code=4502,
        first_audio_ms=2**40,
    )

    assert rows.insert([written]) == 1

    row = SpeechRow.objects.get()
    facts = {name: getattr(row, name) for name in SpeechReceipt.__struct_fields__}
    facts |= {name: str(facts[name]) for name in ("organization_id", "api_key_id", "day")}
    assert facts == msgspec.structs.asdict(written)
    assert row.occurred_at.microsecond % 1000 == 0


def test_rows_of_every_outcome_are_added_to_the_day_of_their_admission() -> None:
    chance = random.Random(4)  # the same requests every time
    written = [
        speech_receipt(
            organization_id=ACME,
            day=f"2026-11-{chance.choice([1, 2, 3]):02d}",
            outcome=outcome,
            characters=chance.randrange(4096),
            audio_ms=chance.randrange(90_000),
        )
        for outcome in SpeechOutcome.values * 5
    ]
    other = speech_receipt(organization_id=str(uuid.UUID(int=8)), day="2026-11-02")

    assert rows.insert([*written[:20], other]) == 21
    assert rows.insert(written[20:]) == len(written) - 20

    right: dict[str, tuple[int, int, int]] = {}
    for each in written:
        requests, characters, audio = right.get(each.day, (0, 0, 0))
        right[each.day] = (requests + 1, characters + each.characters, audio + each.audio_ms)
    assert days() == right
    assert days(other.organization_id) == {"2026-11-02": (1, 40, 2500)}
    assert Counter(SpeechRow.objects.values_list("outcome", flat=True))["backend_error"] == 5
    assert differences() == []


def test_a_request_that_is_written_again_is_counted_once() -> None:
    first, second = speech_receipt(organization_id=ACME), speech_receipt(organization_id=ACME)
    again = speech_receipt(
        request_id=first.request_id, organization_id=ACME, characters=999, day="2026-11-21"
    )
    rows.insert([first])

    assert rows.insert([again, second]) == 1
    assert rows.insert([again]) == 0

    assert days() == {"2026-11-20": (2, 80, 5000)}
    assert SpeechRow.objects.get(pk=first.request_id).characters == first.characters


def test_a_batch_of_both_kinds_is_written_or_not_as_one() -> None:
    chat, speech = receipt(organization_id=ACME), speech_receipt(organization_id=ACME)
    impossible = speech_receipt(organization_id=ACME, audio_ms=-1)

    with pytest.raises((IntegrityError, DataError)):
        rows.insert([chat, speech, impossible])
    assert not UsageRow.objects.exists()
    assert not UsageRollup.objects.exists()
    assert days() == {}

    assert rows.insert([speech, chat]) == 2
    assert rows.insert([chat, speech, speech_receipt(organization_id=ACME)]) == 1
    assert UsageRollup.objects.get().requests == 1
    assert days() == {"2026-11-20": (2, 80, 5000)}


@pytest.mark.parametrize(
    "facts",
    [
        {"outcome": "fine"},
        {"transport": "pigeon"},
        *({figure: -1} for figure in ("characters", "sentences", "audio_ms", "upstream_ms")),
        *({figure: -1} for figure in ("first_audio_ms", "gateway_ms", "http_status", "close_code")),
    ],
    ids=str,
)
def test_the_database_refuses_invalid_rows(facts: dict[str, object]) -> None:
    with pytest.raises((IntegrityError, DataError)):
        rows.insert([speech_receipt(organization_id=ACME, **facts)])

    assert not SpeechRow.objects.exists()
    assert days() == {}


def test_writers_of_the_same_days_neither_lose_a_character_nor_deadlock() -> None:
    organizations = [str(uuid.UUID(int=number)) for number in range(1, 9)]
    failures: list[BaseException] = []
    together = threading.Barrier(3)

    def write(order: int) -> None:
        try:
            together.wait(60)
            for round_ in range(15):
                batch = [
                    each
                    for organization_id in organizations[::order]
                    for each in (
                        speech_receipt(organization_id=organization_id, day="2026-11-19"),
                        receipt(organization_id=organization_id),
                        speech_receipt(organization_id=organization_id, characters=round_),
                    )
                ]
                rows.insert(batch)
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    writers = [threading.Thread(target=write, args=(order,)) for order in (1, -1, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert failures == []
    assert days(organizations[0]) == {
        "2026-11-19": (45, 45 * 40, 45 * 2500),
        "2026-11-20": (45, 3 * sum(range(15)), 45 * 2500),
    }
    assert days(organizations[1])["2026-11-19"] == (30, 30 * 40, 30 * 2500)
    assert differences() == []


def test_characters_are_those_of_one_organization_and_day() -> None:
    rows.insert(
        [
            speech_receipt(organization_id=ACME, day="2026-11-19", characters=5),
            speech_receipt(organization_id=ACME, day="2026-11-20", characters=7),
            speech_receipt(organization_id=ACME, day="2026-11-20", characters=8),
            speech_receipt(organization_id=str(uuid.UUID(int=8)), characters=900),
        ]
    )

    assert characters_of(ACME, "2026-11-20") == 15
    assert characters_of(uuid.UUID(ACME), date(2026, 11, 19)) == 5
    assert characters_of(ACME, "2026-11-21") == 0
