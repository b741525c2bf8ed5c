"""The WebSocket stream as a client sees it: order, frames, rows."""

from __future__ import annotations

import json

import pytest

from speech.audio.pcm import SAMPLE_RATE
from tests.support.speech.caller import SpeechAccount, decoded, seconds
from tests.support.speech.listening import loudness, sentence_heard
from tests.support.texts.sentences import SENTENCES
from tests.support.until import until

TEXTS = ["The first sentence is here. The sec", "ond one follows it. ", "And a third"]


@pytest.mark.parametrize(
    ("name", "container"),
    [("wav", b"RIFF"), ("mp3", b""), ("opus", b"OggS"), ("flac", b"fLaC"), ("pcm", None)],
)
def test_one_complete_file_for_each_sentence(
    speech: SpeechAccount, name: str, container: bytes | None
) -> None:
    with speech.session(response_format=name) as session:
        for text in TEXTS:
            session.text(text)
        session.done()
        *frames, last = session.rest()

        assert last == {"type": "session.done"}
        assert session.close_code == 1000
    assert len(frames) == 3
    for frame in frames:
        assert isinstance(frame, bytes)
        if container is not None:
            assert frame.startswith(container)
            sound, rate, channels = decoded(frame)
            assert (rate, channels) == (SAMPLE_RATE, 1)
        else:
            sound = frame
        assert loudness(sound) > 0.02


def test_ready_has_the_audio_format_and_the_limits(speech: SpeechAccount) -> None:
    with speech.connect() as socket:
        socket.send('{"type": "start", "voice": {"id": "ava"}, "model": "any"}')
        ready = json.loads(socket.recv(60))

    assert ready == {
        "type": "ready",
        "sample_rate": 24_000,
        "channels": 1,
        "limits": {
            "message_characters": 4096,
            "message_bytes": 65_536,
            "session_characters": 20_000,
        },
    }


def test_a_recogniser_hears_every_sentence_in_its_order(speech: SpeechAccount) -> None:
    chosen = [SENTENCES[number] for number in (1, 5, 8)]
    with speech.session(voice="leo") as session:
        session.text(". ".join(chosen))
        session.done()
        frames = [frame for frame in session.rest() if isinstance(frame, bytes)]

    assert [sentence_heard(decoded(frame)[0], SENTENCES) for frame in frames] == chosen


def test_a_sentence_is_spoken_before_the_text_is_done(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("The first one is complete. The next one is ")
        assert seconds(session.frame()) > 0.5
        session.text("only now.")
        session.done()
        assert seconds(session.frame()) > 0.5
        assert session.receive() == {"type": "session.done"}


def test_flush_speaks_the_text_so_far(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("Half a sentence")
        session.send(type="flush")
        assert seconds(session.frame()) > 0.5
        session.send(type="flush")
        session.done()
        assert session.receive() == {"type": "session.done"}

    assert speech.row_when_written().characters == len("Half a sentence")


def test_a_disconnected_client_pays_for_the_sent_sentence_alone(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("One is spoken here. The second one is never com")
        session.frame()

    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("client_disconnected", 499, None)
    assert (row.characters, row.sentences) == (len("One is spoken here. "), 1)


def test_cancel_drops_unspoken_text(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("Never spoken")
        session.send(type="cancel")

        assert session.receive() == {"type": "session.done"}
        assert session.close_code == 1000
    row = speech.row_when_written()
    assert (row.outcome, row.characters, row.sentences) == ("success", 0, 0)


def test_cancel_is_accepted_after_done(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("This is one of many sentences. " * 60)
        session.done()
        session.send(type="cancel")
        *frames, last = session.rest()

    assert last == {"type": "session.done"}
    assert len(frames) < 60


def test_the_row_of_a_session_has_its_facts(speech: SpeechAccount) -> None:
    text = "The first one. [pause] The second one!"
    with speech.session(response_format="flac") as session:
        session.text(text)
        session.done()
        *frames, last = session.rest()
        assert last == {"type": "session.done"}
        answer = session.socket.response
    assert answer is not None
    row = speech.row(answer.headers["x-request-id"])

    assert (row.outcome, row.http_status, row.error_type) == ("success", 101, None)
    assert (row.transport, row.response_format, row.voice) == ("websocket", "flac", "ava")
    assert (row.engine, row.cloned, row.sentences) == ("espeak", False, 2)
    assert row.characters == len(text.replace("[pause]", ""))
    sound = sum(len(decoded(frame)[0]) for frame in frames if isinstance(frame, bytes))
    assert row.audio_ms == round(sound / 2 / SAMPLE_RATE * 1000)
    assert 0 < row.upstream_ms <= row.gateway_ms
    assert 0 < row.first_audio_ms <= row.gateway_ms


def test_fifty_concurrent_sessions_succeed(speech: SpeechAccount) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(number: int) -> int:
        with speech.session() as session:
            session.text(f"Session number {number} speaks. ")
            session.done()
            return len(session.rest())

    with ThreadPoolExecutor(50) as threads:
        assert list(threads.map(one, range(50))) == [2] * 50
    rows = until(lambda: found if len(found := speech.rows()) >= 50 else None)
    assert [row.outcome for row in rows] == ["success"] * 50
