"""Mixes are made behind the clones' backs, where the operator lets it; a failure changes no voice."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from asgiref.sync import sync_to_async

from core.ids import NIL_UUID
from speech.audio.pcm import SAMPLE_RATE, pcm_bytes
from speech.engines import Engine, EngineError, Utterance
from speech.engines.espeak.profile import NEUTRAL
from speech.models import VoiceClone
from speech.voices.clones import rows
from speech.voices.clones.clips import cipher
from speech.voices.clones.mixer import MOST_TRIES, Mixer
from tests.support.builders import clips, speech_rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]

STYLES = frozenset({"af_heart", "am_adam"})


class Buzzing(Engine):
    """Speaks with the pitch of a mix, once ``may_speak``; raises ``error`` instead, if any."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.spoken = self.opened = 0
        self.began, self.may_speak, self.closed = (asyncio.Event() for _ in range(3))
        self.may_speak.set()

    def open(self) -> Engine:
        self.opened += 1
        return self

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        self.spoken += 1
        self.began.set()
        await self.may_speak.wait()
        if self.error is not None:
            raise self.error
        assert utterance.mix is not None
        yield pcm_bytes(
            clips.voice(4.0, SAMPLE_RATE, 120.0 * utterance.mix.pitch).astype(np.float32)
        )

    async def close(self) -> None:
        self.closed.set()


@pytest.fixture
def engine() -> Buzzing:
    return Buzzing()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    (tmp_path / "lock").touch()
    return tmp_path / "lock"


@pytest.fixture
def mixer(engine: Buzzing, lock: Path) -> Mixer:
    mixer = Mixer()
    mixer.start(lambda: STYLES, engine.open, lock)
    return mixer


def cloned(name: str = "Anna", sealed: bytes | None = None) -> VoiceClone:
    owner = speech_rows.organization()
    sealed = cipher().seal(clips.wav(clips.voice(4.0))) if sealed is None else sealed
    profile = msgspec.json.decode(NEUTRAL.to_json())
    new = rows.NewClone(str(owner.pk), str(NIL_UUID), name, name.lower(), 4.0, profile, sealed)
    return rows.add(new, ())


async def profile_of(clone: VoiceClone) -> bytes:
    return msgspec.json.encode((await VoiceClone.objects.aget(pk=clone.pk)).profile)


async def being_mixed(mixer: Mixer, engine: Buzzing) -> VoiceClone:
    """A clone whose mix is begun; it goes on once ``engine.may_speak`` is set."""
    clone = await sync_to_async(cloned)()
    engine.may_speak.clear()
    mixer.nudge()
    await engine.began.wait()
    return clone


async def test_a_clone_keeps_its_profile_and_gets_a_mix(mixer: Mixer, engine: Buzzing) -> None:
    clone = await sync_to_async(cloned)()
    before = await profile_of(clone)
    assert rows.stored_mix(before) is None

    await mixer.make_missing()

    after = await profile_of(clone)
    mix = rows.stored_mix(after)
    assert mix is not None
    assert {name for name, _ in mix.styles} <= STYLES
    kept = {name: held for name, held in msgspec.json.decode(after).items() if name != rows.MIX}
    assert kept == msgspec.json.decode(before)
    assert NEUTRAL.from_json(after) == NEUTRAL
    assert (engine.spoken, engine.opened, engine.closed.is_set()) == (5, 1, True)
    await mixer.make_missing()
    assert engine.opened == 1


async def test_a_clone_that_was_deleted_meanwhile_stays_empty(
    mixer: Mixer, engine: Buzzing
) -> None:
    clone = await being_mixed(mixer, engine)
    await sync_to_async(rows.delete)(clone.pk, str(clone.organization_id))
    engine.may_speak.set()
    await engine.closed.wait()

    assert await profile_of(clone) == b"{}"
    assert not await VoiceClone.objects.filter(audio__isnull=False).aexists()


async def test_a_failure_keeps_the_voice_of_today_and_is_not_tried_for_ever(
    mixer: Mixer, engine: Buzzing, caplog: pytest.LogCaptureFixture
) -> None:
    lost = await sync_to_async(cloned)("Bea", b"sealed by a lost key")
    engine.error = EngineError("The kokoro engine took too long.")
    slow = await sync_to_async(cloned)()
    before = [await profile_of(lost), await profile_of(slow)]
    for _ in range(MOST_TRIES + 1):
        await mixer.make_missing()

    assert [await profile_of(lost), await profile_of(slow)] == before
    assert engine.spoken == MOST_TRIES
    assert "SVC_CLONE_KEYS" in caplog.text
    assert "took too long" in caplog.text


async def test_nothing_is_made_without_leave_or_while_another_process_is_at_it(
    mixer: Mixer, engine: Buzzing, lock: Path
) -> None:
    await sync_to_async(cloned)()
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await mixer.make_missing()
    mixer.start(frozenset, engine.open, lock)
    mixer.nudge()
    await mixer.make_missing()

    assert engine.opened == 0


async def test_an_end_of_the_process_leaves_the_clone_to_the_next(
    mixer: Mixer, engine: Buzzing
) -> None:
    clone = await being_mixed(mixer, engine)
    await mixer.stop()

    assert engine.closed.is_set()
    assert rows.stored_mix(await profile_of(clone)) is None
