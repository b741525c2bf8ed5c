"""``POST /v1/audio/speech`` as a client sees it: files, headers, errors."""

from __future__ import annotations

import io
from typing import Any

import pytest
import soundfile

from accounts.models import Plan
from core import clock
from speech.audio.pcm import SAMPLE_RATE
from tests.support.builders import speech_rows
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import TWO_SENTENCES, SpeechAccount, decoded
from tests.support.speech.errors import error_of
from tests.support.speech.listening import loudness, sentence_heard
from tests.support.texts.sentences import SENTENCES

CONTENT_TYPES = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "pcm": "audio/pcm",
    "opus": "audio/opus",
    "flac": "audio/flac",
}
CONTAINERS = {"wav": "WAV", "mp3": "MP3", "opus": "OGG", "flac": "FLAC"}


def assert_as_long(pcm: bytes, other: bytes) -> None:
    """The engine's own length of one text varies by a few samples from call to call."""
    assert len(pcm) == pytest.approx(len(other), abs=0.02 * SAMPLE_RATE * 2)


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_complete_file_in_every_format(speech: SpeechAccount, name: str) -> None:
    pcm = speech.speak(TWO_SENTENCES, response_format="pcm").content

    answer = speech.speak(TWO_SENTENCES, response_format=name)

    row = speech.row(answer.headers["x-request-id"])

    assert answer.status_code == 200
    assert answer.headers["content-type"] == CONTENT_TYPES[name]
    assert answer.headers["cache-control"] == "no-store"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert soundfile.info(io.BytesIO(answer.content)).format == CONTAINERS[name]
    sound, rate, channels = decoded(answer.content)
    assert (rate, channels) == (SAMPLE_RATE, 1)
    assert row.audio_ms == round(len(sound) / 2 / SAMPLE_RATE * 1000)
    assert_as_long(sound, pcm)
    assert loudness(sound) == pytest.approx(loudness(pcm), rel=0.1)
    upstream, gateway = (int(answer.headers[f"x-{who}-ms"]) for who in ("upstream", "gateway"))
    assert 0 <= upstream <= gateway <= answer.elapsed.total_seconds() * 1000 + 1


def test_pcm_is_streamed(speech: SpeechAccount) -> None:
    answer = speech.speak(TWO_SENTENCES, response_format="pcm")

    row = speech.row(answer.headers["x-request-id"])
    assert row.audio_ms == round(len(answer.content) / 2 / SAMPLE_RATE * 1000)

    assert answer.headers["content-type"] == CONTENT_TYPES["pcm"]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["x-accel-buffering"] == "no"
    assert "content-length" not in answer.headers
    assert len(answer.content) % 2 == 0
    assert loudness(answer.content) > 0.02


def test_a_recogniser_hears_the_sentence(speech: SpeechAccount) -> None:
    content = speech.speak(SENTENCES[4], voice="leo", response_format="flac").content

    assert sentence_heard(decoded(content)[0], SENTENCES) == SENTENCES[4]


@pytest.mark.parametrize(
    ("fields", "status", "kind", "named"),
    [
        ({"voice": "nobody"}, 400, "proxy_error", "GET /v1/models"),
        ({"input": "Hi [pause:9s]"}, 400, "invalid_request_error", "'input'"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_leaves_no_row(
    speech: SpeechAccount, fields: dict[str, Any], status: int, kind: str, named: str
) -> None:
    answer = speech.post({"voice": "ava", "input": "Hi", **fields})

    assert error_of(answer)[:2] == (status, kind)
    assert named in error_of(answer)[2]
    assert speech.rows() == []


@pytest.mark.parametrize("body", [b"{", b'{"input": "\\ud800", "voice": "ava"}'])
def test_a_body_that_is_not_a_json_object_is_400(speech: SpeechAccount, body: bytes) -> None:
    assert error_of(speech.post(body))[:2] == (400, "invalid_request_error")


def test_absent_hidden_foreign_and_deleted_voices_get_the_same_error(
    speech: SpeechAccount, gateway: Gateway
) -> None:
    standard = speech_account(gateway, Plan.STANDARD)

    hidden = error_of(standard.speak(voice="asha"))

    assert hidden == error_of(standard.speak(voice="nobody"))
    foreign = speech_rows.clone(speech.organization)
    gone = speech_rows.clone(standard.organization, slot=None, deleted_at=clock.now())
    for clone in (foreign, gone):
        assert error_of(standard.speak(voice=clone.pk)) == hidden
    assert speech.speak(voice="asha").status_code == 200


def test_a_body_that_is_too_large_is_413(speech: SpeechAccount) -> None:
    answer = speech.post(b" " * 200_000)

    assert error_of(answer)[:2] == (413, "invalid_request_error")


def test_the_longest_input_in_escapes_is_accepted(speech: SpeechAccount) -> None:
    body = b'{"voice": "ava", "input": "Hi ' + b"\\ud83d\\ude00" * 4093 + b'"}'

    assert speech.post(body).status_code == 200
