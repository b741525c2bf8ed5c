"""The charge of a speech request, its row, and its limits."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from accounts.models import Plan
from speech.audio.pcm import SAMPLE_RATE
from speech.models import SpeechBackend, Voice
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SENTENCE, TWO_SENTENCES, SpeechAccount, decoded
from tests.support.speech.listening import sentence_heard
from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until


@pytest.mark.parametrize("name", ["wav", "pcm"])
def test_the_row_of_a_request_has_its_facts(speech: SpeechAccount, name: str) -> None:
    text = "Hello there. [pause] [laughs] How are you?"
    answer = speech.speak(text, response_format=name)
    row = speech.row(answer.headers["x-request-id"])

    assert (row.outcome, row.http_status, row.error_type) == ("success", 200, None)
    assert (row.transport, row.response_format) == ("http", name)
    assert (row.voice, row.engine, row.cloned) == ("ava", "espeak", False)
    assert row.api_key_id == speech.api_key.pk
    assert row.characters == len("Hello there.   How are you?")
    assert row.sentences == 2
    assert int(answer.headers["x-upstream-ms"]) <= row.upstream_ms <= row.gateway_ms
    assert 0 < row.first_audio_ms <= row.gateway_ms
    assert speech.spoken_today() == row.characters


# -- limits --------------------------------------------------------------------------------------


def at_once(count: int, ask: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    with ThreadPoolExecutor(count) as threads:
        return [each.result() for each in [threads.submit(ask) for _ in range(count)]]


@pytest.mark.parametrize(
    ("limit", "reason", "allowed"),
    [
        ({"speech_requests_per_minute": 5}, "requests_per_minute", 5),
        ({"speech_characters_per_day": 100}, "characters_per_day", 10),
    ],
)
def test_a_limit_is_exact_under_twenty_at_once(
    gateway: Gateway, limit: dict[str, int], reason: str, allowed: int
) -> None:
    speech = speech_account(gateway, Plan.ENTERPRISE, **limit)
    began = time.monotonic()

    answers = at_once(20, lambda: speech.speak("Ten chars."))

    refused = [answer for answer in answers if answer.status_code != 200]
    # The bucket of a minute refills meanwhile, by a request each twelve seconds.
    refilled = 1 + (time.monotonic() - began) // 12 if reason == "requests_per_minute" else 0
    assert allowed <= 20 - len(refused) <= allowed + refilled
    for answer in refused:
        assert answer.status_code == 429
        assert answer.json()["error"]["type"] == "quota_error"
        assert answer.headers["x-quota-reason"] == reason
        assert answer.headers.get("x-should-retry") == (
            "false" if reason == "characters_per_day" else None
        )
        assert int(answer.headers["retry-after"]) >= 1
    assert len(speech.rows_when(20 - len(refused))) == 20 - len(refused)
    assert speech.spoken_today() == 10 * (20 - len(refused))


def test_only_speech_counts_as_a_request_of_the_minute(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=1)

    for _ in range(3):
        assert "ava" in speech.voices()
    made = speech.create()
    assert made.status_code == 201
    assert speech.delete(made.json()["id"]).status_code == 200
    assert speech.speak("Hi.").status_code == 200
    assert speech.speak("Hi.").headers["x-quota-reason"] == "requests_per_minute"


def test_a_refused_text_is_not_charged(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_characters_per_day=20)

    assert speech.speak("This text is longer than the quota.").status_code == 429
    assert speech.post({"voice": "nobody", "input": "Hi."}).status_code == 400
    assert speech.speak("Twenty characters!!!").status_code == 200
    assert speech.speak("x").status_code == 429


# -- engines that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["file", "pcm", "sse"])
def test_a_remote_engine_speaks(
    speech: SpeechAccount, remote: dict[str, str], profile: str
) -> None:
    answer = speech.speak(SENTENCE, voice=remote[profile], response_format="flac")

    words = SENTENCE.lower().rstrip(".")
    assert sentence_heard(decoded(answer.content)[0], [words, "something else is said"]) == words
    row = speech.row(answer.headers["x-request-id"])
    assert (row.engine, row.outcome) == (f"simulated-{profile}", "success")


def test_the_callers_voice_never_reaches_the_engine_and_sounds_are_in_its_spelling(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    speech.speak("Zebra one [laughs] and [sighs] two.", voice=remote["file"], model="secret-model")

    [asked] = speech_server.requests_with("Zebra one")
    assert asked["body"]["input"].split() == ["Zebra", "one", "(laugh)", "and", "two."]
    assert asked["body"]["voice"] == "noah"
    assert remote["file"] not in json.dumps(asked)
    assert "secret-model" not in json.dumps(asked)


@pytest.mark.parametrize(
    ("name", "fault", "status", "outcome"),
    [
        ("wav", "status@500", 502, "backend_error"),
        ("pcm", "status@503", 503, "backend_unavailable"),
        ("pcm", "hang", 504, "backend_timeout"),
        ("wav", "reset", 502, "backend_unavailable"),
        ("pcm", "html", 502, "backend_protocol_error"),
    ],
)
def test_an_engine_that_fails_before_its_first_sound_is_an_error_without_charge(
    gateway: Gateway, speech_server: SpeechServer, name: str, fault: str, status: int, outcome: str
) -> None:
    speech = speech_account(gateway, speech_characters_per_day=100)
    backend = SpeechBackend.objects.create(
        name=f"failing {uuid.uuid4()}",
        base_url=f"{speech_server.url}/v1",
        model="x",
        normalizes_text=True,
        first_byte_seconds=0.5 if fault == "hang" else 30.0,
    )
    voice = Voice.objects.create(id=f"v-{uuid.uuid4()}", backend=backend, engine_voice="noah").pk
    until(lambda: voice in speech.voices())

    answer = speech.speak(f"[[sim fault:{fault}]] Some words.", voice=voice, response_format=name)

    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "proxy_error"
    for secret in ("sk-upstream", "Traceback", "10.0.0.5", "html"):
        assert secret not in answer.text
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.http_status, row.error_type) == (outcome, status, "proxy_error")
    assert (row.characters, row.audio_ms) == (0, 0)
    # All characters were refunded.
    assert speech.speak("x" * 100).status_code == 200


def test_a_failure_in_the_second_sentence_of_a_file_is_an_error_and_free(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    answer = speech.speak("One is fine. [[sim fault:status@500]] Two is not.", voice=remote["file"])

    assert answer.status_code == 502
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.characters, row.audio_ms) == ("backend_error", 0, 0)


def test_a_failing_stream_is_truncated_and_its_row_has_the_reason(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    text = "One is fine. [[sim fault:status@500]] Two is not."
    with pytest.raises(httpx2.RemoteProtocolError):
        speech.speak(text, voice=remote["pcm"], response_format="pcm")
    row = speech.row_when_written()

    assert (row.outcome, row.http_status, row.error_type) == ("backend_error", 200, "proxy_error")
    assert row.audio_ms > 200
    assert row.characters == len(text)


def test_a_stream_begins_while_the_engine_still_speaks(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    with speech.streaming(f"[[sim pace:2]] {TWO_SENTENCES}", remote["pcm"]) as answer:
        upstream = int(answer.headers["x-upstream-ms"])
        content = b"".join(answer.iter_raw())

    row = speech.row(answer.headers["x-request-id"])
    assert row.upstream_ms > upstream + 500
    assert row.audio_ms == round(len(content) / 2 / SAMPLE_RATE * 1000)


def test_a_session_ends_with_the_sentences_before_the_failure(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    with speech.session(voice=remote["file"]) as session:
        session.text("One is fine. [[sim fault:status@500]] Two is not.")
        session.done()
        messages = session.rest()
        code = session.close_code

    assert [type(message) for message in messages] == [bytes, dict]
    assert messages[1]["error"]["type"] == "proxy_error"  # type: ignore[call-overload]
    assert code == 4502
    row = speech.row_when_written()
    assert (row.outcome, row.sentences, row.characters) == (
        "backend_error",
        1,
        len("One is fine. "),
    )


# -- clients that disconnect ---------------------------------------------------------------------


def test_a_disconnected_client_of_a_stream_stops_the_engine(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    text = f"[[sim pace:1]] Quagga. {TWO_SENTENCES} {TWO_SENTENCES}"
    with speech.asking(input=text, voice=remote["pcm"]) as raw:
        assert b"200 OK" in raw.recv(1000)
    row = speech.row_when_written()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.characters == len(text)
    assert row.audio_ms < 5000
    until(lambda: speech_server.account()["running"] == 0)


def test_a_client_that_disconnects_before_any_sound_is_not_charged(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    text = "[[sim first:0.8]] Okapi."
    with speech.asking(input=text, voice=remote["pcm"]):
        until(lambda: speech_server.account()["running"])
    row = speech.row_when_written()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert (row.characters, row.audio_ms) == (0, 0)
