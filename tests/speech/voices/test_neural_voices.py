"""Voices of the neural engine in the catalog and over the sockets of a running gateway."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from accounts.models import User
from speech.engines import embedded
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro.engine import Kokoro
from speech.engines.kokoro.pool import KokoroPool
from speech.models import Voice, VoiceClone
from speech.voices.snapshot import read_snapshot
from tests.support.builders import clips, speech_rows
from tests.support.live import ROOT, Gateway
from tests.support.metrics import metrics
from tests.support.pages.admin_forms import logged_in
from tests.support.speech.accounts import speech_account
from tests.support.speech.neural import needs_neural
from tests.support.until import until

TEXT = "Good morning. How are you?"


@pytest.fixture
def not_installed(settings: Any, tmp_path: Path) -> None:
    settings.SVC_NEURAL_DIR = tmp_path / "nothing"


@pytest.mark.django_db
@pytest.mark.usefixtures("not_installed")
def test_without_the_engine_its_voices_are_refused_with_the_install_command() -> None:
    with pytest.raises(CommandError, match=r"voices\[0\]\.engine: .*make neural"):
        call_command("load_catalog", str(ROOT / "deploy/neural_catalog.toml"))

    assert not Voice.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("not_installed")
def test_without_the_engine_its_voices_are_not_served_and_the_others_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    speech_rows.voice("heart", embedded_engine="kokoro", engine_voice="af_heart")

    assert not read_snapshot().voices
    assert "voices of the neural engine are not served" in caplog.text
    assert "make neural" in caplog.text

    caplog.clear()
    Voice.objects.all().delete()
    speech_rows.voice("ava", neural_voice="af_heart")
    assert read_snapshot().voices["ava"].ref.engine == "espeak"
    assert not caplog.text
    speech_rows.voice("heart", embedded_engine="kokoro", engine_voice="af_heart")

    client = logged_in(User.objects.create_superuser("op@example.com", "correct horse battery"))
    page = client.get("/admin/speech/voice/").content.decode()
    assert "no account: " in page
    assert "Kokoro-82M (neural)" in page


@pytest.mark.django_db
@needs_neural
def test_voices_of_an_engine_that_does_not_start_are_not_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speech_rows.voice("heart", embedded_engine="kokoro", engine_voice="af_heart")
    assert list(read_snapshot().voices) == ["heart"]

    monkeypatch.setattr(embedded, "_failed", {})
    embedded.mark_failed(embedded.KOKORO, "The kokoro worker does not start.")

    assert not read_snapshot().voices


@pytest.mark.django_db
@needs_neural
def test_the_catalog_of_neural_voices_can_be_loaded_again(capsys: Any) -> None:
    for _ in range(2):
        call_command("load_catalog", str(ROOT / "deploy/neural_catalog.toml"))

    voices = list(Voice.objects.values_list("embedded_engine", "language", "backend"))
    assert len(voices) == 15
    assert {engine for engine, _, _ in voices} == {"kokoro"}
    assert {language for _, language, _ in voices} == {"en", "hi"}


@pytest.mark.django_db
def test_a_speech_server_may_be_called_kokoro() -> None:
    backend = speech_rows.backend("kokoro")
    voice = speech_rows.voice("mia", backend=backend, engine_voice="anything")

    (found,) = read_snapshot().voices.values()
    assert found.ref.engine == "kokoro"
    assert not found.ref.is_neural
    assert voice.backend == backend


@pytest.fixture
def neural(start_gateway: Callable[..., Gateway]) -> Iterator[Gateway]:
    voice, _ = Voice.objects.get_or_create(
        id="heart", defaults={"embedded_engine": "kokoro", "engine_voice": "af_heart"}
    )
    yield start_gateway(LOG_LEVEL="INFO")
    voice.delete()


@pytest.mark.long
@needs_neural
def test_a_neural_voice_speaks_over_http_and_websocket_and_its_speed_is_shown(
    neural: Gateway,
) -> None:
    speech = speech_account(neural)
    assert {"ava", "heart"} <= set(speech.voices())

    wav = speech.speak(TEXT, voice="heart", response_format="wav", timeout=60)
    sound, rate = soundfile.read(io.BytesIO(wav.content))
    assert (wav.status_code, rate) == (200, 24_000)
    assert 1.2 < len(sound) / rate < 4.5

    pcm = speech.speak(TEXT, voice="heart", response_format="pcm", timeout=60)
    assert len(pcm.content) / 48_000 == pytest.approx(len(sound) / rate, abs=0.01)

    with speech.session(voice="heart", response_format="wav") as session:
        session.text(TEXT)
        session.done()
        frames = [session.frame(60.0), session.frame(60.0)]
        assert session.receive() == {"type": "session.done"}
    lengths = [len(soundfile.read(io.BytesIO(frame))[0]) / 24_000 for frame in frames]
    assert all(0.4 < length < 2.5 for length in lengths)

    assert {row.engine for row in speech.rows()} == {"kokoro"}
    assert speech.speak("Hello.", voice="ava").status_code == 200
    _speed_is_told(neural)


@pytest.mark.long
@needs_neural
def test_an_engine_that_is_installed_meanwhile_speaks_the_voices_that_have_one_there(
    start_gateway: Callable[..., Gateway], tmp_path: Path, settings: Any
) -> None:
    """Where it is too slow or busy, and in a session that began before, they stay with espeak-ng."""
    Voice.objects.filter(id="ava").update(neural_voice="af_heart")
    gateway = start_gateway(
        LOG_LEVEL="INFO",
        SVC_NEURAL_DIR=str(tmp_path / "neural"),
        SVC_SPEECH_IDLE_SECONDS="600",  # of the session, while the engine is installed and measured
    )
    speech = speech_account(gateway)
    with speech.session(voice="ava") as session:
        assert speech.speak(TEXT, voice="ava").status_code == 200
        (tmp_path / "neural").symlink_to(settings.SVC_NEURAL_DIR)
        is_fast = _speed(gateway) <= 0.9
        assert speech.speak(TEXT, voice="ava", timeout=60).status_code == 200
        session.text(TEXT)
        session.done()
        assert session.frame(60.0)
    until(lambda: len(speech.rows()) == 3)
    assert sorted(row.engine for row in speech.rows()) == [
        "espeak",
        "espeak",
        "kokoro" if is_fast else "espeak",
    ]


@pytest.mark.long
@needs_neural
def test_a_clone_is_natural_once_its_mix_is_made_but_not_in_a_session_that_began_before(
    start_gateway: Callable[..., Gateway],
) -> None:
    Voice.objects.filter(id="leo").update(neural_voice="am_michael", mixed_into_clones=True)
    gateway = start_gateway(LOG_LEVEL="INFO")
    speech = speech_account(gateway)
    is_fast = _speed(gateway) <= 0.9
    clone = speech.create(audio_b64=clips.base64_of(clips.wav(clips.voice(4.0)))).json()["id"]
    with speech.session(voice=clone, keep_open=True) as session:
        if is_fast:
            until(lambda: "neural" in VoiceClone.objects.get(pk=clone).profile, 300.0)
        assert speech.speak(TEXT, voice=clone, timeout=60).status_code == 200
        session.text(TEXT)
        session.done()
        assert session.frame(60.0)
    until(lambda: len(speech.rows()) == 2)
    engines = sorted(row.engine for row in speech.rows())
    assert engines == ["espeak", "kokoro" if is_fast else "espeak"]
    assert all(row.cloned for row in speech.rows())

    assert speech.delete(clone).status_code == 200
    assert VoiceClone.objects.get(pk=clone).profile == {}
    assert speech.speak(TEXT, voice=clone).status_code == 400


@pytest.mark.parametrize(
    ("factor", "running", "is_free"),
    [
        (None, 0, False),
        (0.95, 0, False),
        (0.9, 0, True),
        (0.9, 1, False),
        (0.4, 1, True),
        (0.4, 2, False),
    ],
)
def test_the_engine_is_free_while_it_speaks_to_fewer_than_it_can(
    factor: float | None, running: int, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Kokoro(Espeak(workers=1), Path("nowhere"))
    engine.real_time_factor = factor
    monkeypatch.setattr(KokoroPool, "orders", running)
    assert engine.is_free is is_free


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"neural_voice": "af_nobody"}, "no voice 'af_nobody'"),
        ({"neural_voice": "hf_alpha"}, "hf_alpha speaks hi, not en"),
        (
            {"embedded_engine": "kokoro", "engine_voice": "af_sky", "neural_voice": "af_heart"},
            "Only a voice of espeak-ng",
        ),
        ({"neural_voice": "", "mixed_into_clones": True}, "Only an English voice that the neural"),
        (
            {
                "language": "hi",
                "engine_voice": "hi",
                "neural_voice": "hf_beta",
                "mixed_into_clones": True,
            },
            "Only an English voice",
        ),
    ],
)
def test_a_voice_beside_espeaks_is_checked(columns: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Voice(**{"id": "ava", "engine_voice": "en-us+f3", **columns}).clean()


def _speed(gateway: Gateway) -> float:
    """The engine's real-time factor, once it was measured."""
    name = "svc_speech_neural_real_time_factor"
    return until(lambda: metrics(gateway).sum(name), 90.0)


def _speed_is_told(gateway: Gateway) -> None:
    figure = _speed(gateway)

    assert 0.01 < figure < 60
    log = gateway.command.log.read_text()
    assert "s for a second of sound" in log
    assert ("too slow for live streams" in log) == (figure > 0.9)
