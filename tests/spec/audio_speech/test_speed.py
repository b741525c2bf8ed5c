"""``speed`` and ``instructions`` on every engine and both transports."""

from __future__ import annotations

import pytest

from speech.models import SpeechBackend
from tests.support.speech.caller import SpeechAccount, seconds
from tests.support.speech.errors import error_of
from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until

HINDI = "आज सुबह की गाड़ी फिर देर से आई और हम नदी के किनारे चलते रहे।"
LONG = "The morning train was late again, and we walked along the river until the evening came."


@pytest.mark.parametrize("speed", [0.25, 4.0])
@pytest.mark.parametrize(("voice", "text"), [("ava", LONG), ("asha", HINDI)])
def test_the_embedded_voices_follow_speed(
    speech: SpeechAccount, voice: str, text: str, speed: float
) -> None:
    usual = seconds(speech.speak(text, voice).content)

    hurried = seconds(speech.speak(text, voice, speed=speed).content)

    assert usual / hurried == pytest.approx(speed, rel=0.12)


def test_ssml_is_spoken_at_its_pace_and_charged_without_its_tags(speech: SpeechAccount) -> None:
    usual = seconds(speech.speak(LONG).content)

    answer = speech.speak(f"<speak><prosody rate='50%'>{LONG}</prosody></speak>", speed=4)
    broken = speech.speak("<speak>Hello & goodbye</speak>")

    assert usual / seconds(answer.content) == pytest.approx(2, rel=0.12)
    assert speech.row(answer.headers["x-request-id"]).characters == len(LONG)
    assert error_of(broken)[:2] == (400, "invalid_request_error")


def test_a_session_follows_speed(speech: SpeechAccount) -> None:
    lengths = []
    for speed in (None, 2.0):
        with speech.session(speed=speed) as session:
            session.text(LONG)
            session.done()
            frame, last = session.rest()
        assert isinstance(frame, bytes)
        assert last == {"type": "session.done"}
        lengths.append(seconds(frame))

    assert lengths[0] / lengths[1] == pytest.approx(2.0, rel=0.12)


def test_an_invalid_speed_is_refused(speech: SpeechAccount) -> None:
    status, kind, message = error_of(speech.speak(speed=4.1))

    assert (status, kind) == (400, "invalid_request_error")
    assert "'speed'" in message
    with speech.connect() as socket:
        socket.send('{"type": "start", "voice": "ava", "speed": 4.1}')
        assert "'speed'" in str(socket.recv(60))
    assert speech.rows() == []


def test_a_speech_server_gets_the_speed(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    text = "We speak to many servers and they are told how fast to be."
    usual = seconds(speech.speak(text, remote["pcm"]).content)

    slow = seconds(speech.speak(text, remote["pcm"], speed=0.5).content)

    assert slow / usual == pytest.approx(2.0, rel=0.12)
    asked = [entry["body"].get("speed") for entry in speech_server.requests_with("many servers")]
    assert asked[-2:] == [None, 0.5]


def test_instructions_reach_a_server_from_a_session(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    backend = SpeechBackend.objects.get(voices=remote["pcm"])
    backend.instructions_field = "instructions"
    backend.save()

    def told() -> str | None:
        with speech.session(remote["pcm"], instructions="Whisper.") as session:
            session.text("A whispered session.")
            session.done()
            session.rest()
        said: str | None = speech_server.requests_with("whispered")[-1]["body"].get("instructions")
        return said

    try:
        assert until(told) == "Whisper."
    finally:
        backend.instructions_field = ""
        backend.save()


def test_instructions_are_ignored_by_engines_without_that_feature(speech: SpeechAccount) -> None:
    assert speech.speak(instructions="Whisper.").status_code == 200
    status, kind, message = error_of(speech.speak(instructions="x" * 4097))

    assert (status, kind) == (400, "invalid_request_error")
    assert "'instructions'" in message
