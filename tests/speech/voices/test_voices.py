"""Voices are resolved by id and account, and changes take effect at once."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.changes import ChangeWatcher
from accounts.models import Organization, Plan
from core import clock
from core.database.threads import threads
from core.errors import InternalError
from speech.engines import StyleMix, embedded
from speech.engines.espeak.profile import NEUTRAL
from speech.errors import UnknownVoice
from speech.models import SpeechBackend, Voice, VoiceClone
from speech.voices.clones import rows
from speech.voices.snapshot import VoiceRef
from speech.voices.voices import Voices
from tests.accounts.conftest import watcher
from tests.support.builders import speech_rows
from tests.support.servers.database_outage import database_outage

__all__ = ["watcher"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]


@pytest.fixture
def voices(watcher: ChangeWatcher, transactional_db: None) -> Voices:
    found = Voices(watcher)
    found.load()
    return found


@pytest.fixture
async def owner() -> Organization:
    return await sync_to_async(speech_rows.organization)()


async def resolved(voices: Voices, voice_id: str, owner: Organization) -> VoiceRef:
    return await voices.resolve(voice_id, speech_rows.principal(owner))


async def test_a_global_voice_needs_no_query(
    voices: Voices, django_assert_num_queries: Any, owner: Organization
) -> None:
    await sync_to_async(speech_rows.voice)("ava")
    await sync_to_async(voices.load)()

    with database_outage():
        ref = await resolved(voices, "ava", owner)

    assert ref == VoiceRef("ava", "en", "en-us+f3", None)


@pytest.mark.parametrize("voice_id", ["ava", "clone_01arz3ndektsv4rrffq69g5fav"])
async def test_before_the_first_voices_none_is_said_to_be_missing(
    watcher: ChangeWatcher, owner: Organization, voice_id: str
) -> None:
    voices = Voices(watcher)
    with pytest.raises(InternalError):
        await resolved(voices, voice_id, owner)

    await sync_to_async(voices.load)()

    with pytest.raises(UnknownVoice):
        await resolved(voices, voice_id, owner)


@pytest.mark.parametrize("plan", list(Plan))
async def test_hindi_is_for_enterprise_accounts(voices: Voices, plan: Plan) -> None:
    owner = await sync_to_async(speech_rows.organization)(plan)
    await sync_to_async(speech_rows.hindi_voice)("asha")
    await sync_to_async(voices.load)()

    if plan is Plan.ENTERPRISE:
        assert (await resolved(voices, "asha", owner)).language == "hi"
    else:
        with pytest.raises(UnknownVoice):
            await resolved(voices, "asha", owner)
    assert [voice.ref.id for voice in voices.snapshot.visible_to(plan)] == (
        ["asha"] if plan is Plan.ENTERPRISE else []
    )


@pytest.mark.parametrize(
    "voice_id",
    ["", "nobody", "AVA", "voice_", "voice_" + "0" * 32, "voice_" + "g" * 32, "a" * 9999],
)
async def test_an_unknown_voice_is_refused(
    voices: Voices, voice_id: str, owner: Organization
) -> None:
    await sync_to_async(speech_rows.voice)("ava")
    await sync_to_async(voices.load)()

    with pytest.raises(UnknownVoice):
        await resolved(voices, voice_id, owner)


async def test_a_clone_belongs_to_its_owner_alone_until_it_is_deleted(
    voices: Voices, owner: Organization
) -> None:
    other = await sync_to_async(speech_rows.organization)()
    clone = await sync_to_async(speech_rows.clone)(owner)
    ref = await resolved(voices, clone.pk, owner)

    assert (ref.language, ref.engine_voice, ref.backend) == ("en", "en-us", None)
    assert ref.clone is not None
    assert ref.clone.organization_id == str(owner.pk)
    assert ref.clone.profile == NEUTRAL
    with pytest.raises(UnknownVoice):
        await resolved(voices, clone.pk, other)

    await VoiceClone.objects.filter(pk=clone.pk).aupdate(deleted_at=clock.now(), slot=None)
    with pytest.raises(UnknownVoice):
        await resolved(voices, clone.pk, owner)


async def test_a_backend_that_serves_clones_speaks_them(
    voices: Voices, owner: Organization
) -> None:
    clone = await sync_to_async(speech_rows.clone)(owner)
    backend = await sync_to_async(speech_rows.cloning_backend)()
    await sync_to_async(voices.load)()

    ref = await resolved(voices, clone.pk, owner)

    assert ref.backend is not None
    assert ref.backend.id == str(backend.pk)
    assert ref.clone is not None
    assert ref.clone.profile is None

    await SpeechBackend.objects.aupdate(enabled=False)
    await sync_to_async(voices.load)()
    ref = await resolved(voices, clone.pk, owner)
    assert ref.backend is None
    assert ref.clone is not None
    assert ref.clone.profile == NEUTRAL


@pytest.mark.parametrize("is_let", [False, True])
@pytest.mark.parametrize("is_made", [False, True])
async def test_a_clone_is_neural_where_the_operator_lets_it_and_its_mix_is_made(
    voices: Voices, owner: Organization, is_let: bool, is_made: bool, monkeypatch: Any
) -> None:
    monkeypatch.setattr(embedded, "problem", lambda *_: None)
    mix = StyleMix((("bf_emma", 0.7), ("af_sky", 0.3)), 1.1, 0.9, (0.0,) * 19)
    clone = await sync_to_async(speech_rows.clone)(owner)
    if is_made:
        assert await sync_to_async(rows.keep_mix)(clone.pk, mix)
    await sync_to_async(speech_rows.voice)("ava", neural_voice="bf_emma", mixed_into_clones=is_let)
    await sync_to_async(speech_rows.hindi_voice)(neural_voice="hf_beta")
    await sync_to_async(voices.load)()

    ref = await resolved(voices, clone.pk, owner)

    assert voices.snapshot.clone_styles == (frozenset({"bf_emma"}) if is_let else frozenset())
    assert (ref.engine, ref.engine_voice) == ("espeak", "en-us")
    neural = ref.as_neural()
    if is_let and is_made:
        assert (neural.engine, neural.engine_voice) == ("kokoro", "bf_emma")
        assert neural.clone is not None
        assert (neural.clone.mix, neural.clone.profile) == (mix, NEUTRAL)
    else:
        assert neural == ref

    await sync_to_async(speech_rows.cloning_backend)()
    await sync_to_async(voices.load)()
    assert not (await resolved(voices, clone.pk, owner)).as_neural().is_neural


async def test_a_clone_is_an_internal_error_while_the_database_is_unreachable(
    voices: Voices, owner: Organization
) -> None:
    clone = await sync_to_async(speech_rows.clone)(owner)

    with database_outage(), pytest.raises(InternalError):
        await resolved(voices, clone.pk, owner)

    threads.close()  # whose connections were to the unreachable database
    assert (await resolved(voices, clone.pk, owner)).id == clone.pk


def test_disabled_voices_and_backends_are_not_served(voices: Voices) -> None:
    speech_rows.voice("off", enabled=False)
    speech_rows.voice(
        "on-a-dead-server", backend=speech_rows.backend(enabled=False), engine_voice="x"
    )
    speech_rows.voice("on-a-server", backend=speech_rows.backend(), engine_voice="alloy")
    voices.load()

    assert list(voices.snapshot.voices) == ["on-a-server"]


def test_a_backends_row_becomes_its_reference(
    voices: Voices, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.SVC_SPEECH_TOTAL_SECONDS = 77.0
    monkeypatch.setenv("SVC_BACKEND_KEY_SPEECH", "secret")
    row = speech_rows.backend(
        base_url="http://127.0.0.1:9100/v1/",
        api_key_env="SVC_BACKEND_KEY_SPEECH",
        first_byte_seconds=1.5,
    )
    speech_rows.voice("ava", backend=row, engine_voice="alloy")
    voices.load()

    backend = voices.snapshot.voices["ava"].ref.backend

    assert backend is not None
    assert backend.base_url == "http://127.0.0.1:9100/v1"
    assert backend.api_key == "secret"
    assert "secret" not in repr(backend)
    assert (backend.first_byte_seconds, backend.total_seconds) == (1.5, 77.0)


def test_operators_edits_move_the_stamp(voices: Voices, watcher: ChangeWatcher) -> None:
    row = speech_rows.voice("ava")
    watcher.poll()
    assert "ava" in voices.snapshot.voices

    row.enabled = False
    row.save()
    watcher.poll()
    assert "ava" not in voices.snapshot.voices

    speech_rows.backend("late")
    Voice.objects.all().delete()
    speech_rows.voice("mia", backend=SpeechBackend.objects.get(), engine_voice="nova")
    watcher.poll()
    assert list(voices.snapshot.voices) == ["mia"]


def test_a_process_without_a_watcher_reads_again(voices: Voices) -> None:
    assert list(voices.current().voices) == []
    speech_rows.voice("ava")
    assert list(voices.current().voices) == ["ava"]
