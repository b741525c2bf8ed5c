"""What a worker holds of pronunciations: all changes, and nothing for accounts without any."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.changes import ChangeWatcher
from accounts.models import Organization, Plan
from core.database.threads import threads
from core.errors import InvalidField
from speech.engines import embedded
from speech.text.pronunciations import Alphabet, Growth, Pronunciation
from speech.voices.pronunciations import held, rows
from speech.voices.pronunciations.held import Pronunciations
from speech.voices.pronunciations.views import require_ipa
from speech.voices.snapshot import GlobalVoice, VoiceRef, VoiceSnapshot
from speech.voices.voices import voices
from tests.accounts.conftest import watcher
from tests.support.builders import speech_rows
from tests.support.servers.database_outage import database_outage
from tests.support.speech.speech_server import described

__all__ = ["watcher"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]

VOICE = VoiceRef("ava", "en", "en-us+f3", None)
NEURAL = VoiceRef("heart", "en", "af_heart", None, embedded_engine=embedded.KOKORO)
HINDI = VoiceRef("asha", "hi", "hi+f2", None)
SERVED = VoiceRef("ryan", "en", "ryan", described("http://127.0.0.1"))


@pytest.fixture
def owner() -> Organization:
    return speech_rows.organization()


@pytest.fixture
def held_ones(watcher: ChangeWatcher) -> Pronunciations:
    return Pronunciations(watcher)


async def spoken(holder: Pronunciations, owner: Organization, voice: VoiceRef = VOICE) -> str:
    return (await holder.of(voice, str(owner.pk))).replaced("nginx", [], Growth())


async def put(owner: Organization, spoken: str, **fields: Any) -> str:
    entry = Pronunciation("nginx", spoken, **fields)
    row, _ = await sync_to_async(rows.put)(entry, str(owner.pk))
    return row.pk


async def test_every_change_is_seen_with_the_next_poll(
    owner: Organization, watcher: ChangeWatcher, held_ones: Pronunciations
) -> None:
    other = await sync_to_async(speech_rows.organization)()
    poll = sync_to_async(watcher.poll)
    await poll()
    with database_outage():
        assert await spoken(held_ones, owner) == "nginx"

    first = await put(owner, "one")
    await poll()
    assert await spoken(held_ones, owner) == "one"
    with database_outage():
        assert await spoken(held_ones, owner) == "one"
        assert await spoken(held_ones, other) == "nginx"
    threads.close()
    await put(owner, "two")
    await poll()
    assert await spoken(held_ones, owner) == "two"
    await sync_to_async(rows.delete)(first, str(owner.pk))
    await poll()
    assert await spoken(held_ones, owner) == "nginx"


async def test_the_last_ones_are_spoken_while_the_database_is_away(
    owner: Organization, held_ones: Pronunciations
) -> None:
    await put(owner, "one")
    await sync_to_async(held_ones.load)()
    assert await spoken(held_ones, owner) == "one"
    await put(owner, "two")
    await sync_to_async(held_ones.load)()
    threads.close()  # whose connections are open already

    with database_outage():
        assert await spoken(held_ones, owner) == "one"
    threads.close()


async def test_the_special_one_counts(owner: Organization, held_ones: Pronunciations) -> None:
    await put(owner, "plain")
    await put(owner, "hindi", language="hi")
    await put(owner, "capital", case_sensitive=True)
    await put(owner, "ɛn", alphabet=Alphabet.IPA)
    await sync_to_async(held_ones.load)()

    assert await spoken(held_ones, owner, SERVED) == "capital"
    for voice in (VOICE, HINDI, NEURAL):
        assert (await spoken(held_ones, owner, voice)).startswith("Qzx")


def test_ipa_is_refused_where_no_voice_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {voice.id: GlobalVoice(voice, 0, voice.id) for voice in (SERVED, HINDI)}
    monkeypatch.setattr(voices, "current", lambda: VoiceSnapshot(found))

    require_ipa(Plan.ENTERPRISE)
    with pytest.raises(InvalidField, match="none of your voices takes IPA"):
        require_ipa(Plan.STANDARD)


async def test_few_accounts_are_held(
    held_ones: Pronunciations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MOST_HELD", 1)
    owners = [await sync_to_async(speech_rows.organization)() for _ in range(2)]
    for number, each in enumerate(owners):
        await put(each, f"one {number}")
    await sync_to_async(held_ones.load)()

    for number, each in enumerate(owners):
        assert await spoken(held_ones, each) == f"one {number}"
    assert len(held_ones._held) == 1
