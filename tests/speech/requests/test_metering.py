"""The charge of a speech request, its row, and its limits."""

from __future__ import annotations

import json
import signal
import socket as sockets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from speech.audio.pcm import SAMPLE_RATE
from tests.support.live import NO_TLS, Gateway
from tests.support.served import refuses
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SENTENCE, TWO_SENTENCES, SpeechAccount, decoded
from tests.support.speech.client import SpeechClient
from tests.support.speech.listening import sentence_heard
from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until
from usage.models import SpeechDay


def spoken_today(speech: SpeechAccount) -> int:
    return sum(
        SpeechDay.objects.filter(organization_id=speech.organization.pk).values_list(
            "characters", flat=True
        )
    )


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
    assert spoken_today(speech) == row.characters


# -- limits --------------------------------------------------------------------------------------


def at_once(count: int, ask: Callable[[], httpx2.Response]) -> list[httpx2.Response]:
    with ThreadPoolExecutor(count) as threads:
        return [each.result() for each in [threads.submit(ask) for _ in range(count)]]


def test_requests_a_minute_are_exact_under_twenty_at_once(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=5)

    answers = at_once(20, lambda: speech.speak("Hi."))

    refused = [answer for answer in answers if answer.status_code != 200]
    # The bucket of a minute refills meanwhile, by at most one request in these seconds.
    assert len(refused) in (14, 15)
    for answer in refused:
        assert answer.status_code == 429
        assert answer.json()["error"]["type"] == "quota_error"
        assert answer.headers["x-quota-reason"] == "requests_per_minute"
        assert int(answer.headers["retry-after"]) >= 1
    assert len(speech.rows()) == 20 - len(refused)


def test_only_speech_counts_as_a_request_of_the_minute(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=1)
    client = SpeechClient(speech.url, speech.key, speech.organization)

    for _ in range(3):
        assert "ava" in speech.voices()
    made = client.create()
    assert made.status_code == 201
    assert client.delete(made.json()["id"]).status_code == 200
    assert speech.speak("Hi.").status_code == 200
    assert speech.speak("Hi.").headers["x-quota-reason"] == "requests_per_minute"


def test_characters_a_day_are_exact_under_twenty_at_once(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_characters_per_day=100)

    answers = at_once(20, lambda: speech.speak("Ten chars."))

    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 10
    for answer in refused:
        assert answer.status_code == 429
        assert answer.json()["error"]["type"] == "quota_error"
        assert answer.headers["x-quota-reason"] == "characters_per_day"
        assert answer.headers["x-should-retry"] == "false"
    assert spoken_today(speech) == 100


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


@pytest.mark.parametrize("name", ["wav", "pcm"])
@pytest.mark.parametrize(
    ("fault", "status", "outcome"),
    [
        ("status@500", 502, "backend_error"),
        ("status@503", None, None),
        ("hang", 504, "backend_timeout"),
        ("reset", 502, "backend_unavailable"),
        ("html", 502, "backend_protocol_error"),
        ("empty", 502, "backend_protocol_error"),
    ],
)
def test_an_engine_that_fails_before_its_first_sound_is_an_error_without_charge(
    gateway: Gateway,
    remote: dict[str, str],
    fault: str,
    status: int | None,
    outcome: str | None,
    name: str,
) -> None:
    speech = speech_account(gateway, speech_characters_per_day=100)

    answer = speech.speak(
        f"[[sim fault:{fault}]] Some words.", voice=remote["file"], response_format=name
    )

    assert answer.status_code in ([status] if status else [502, 503])
    assert answer.json()["error"]["type"] == "proxy_error"
    for secret in ("sk-upstream", "Traceback", "10.0.0.5", "html"):
        assert secret not in answer.text
    row = speech.row(answer.headers["x-request-id"])
    assert row.outcome == outcome or outcome is None
    assert (row.http_status, row.error_type) == (answer.status_code, "proxy_error")
    assert (row.characters, row.audio_ms) == (0, 0)
    # All characters were refunded.
    assert speech.speak("x" * 100).status_code == 200


def test_an_unreachable_engine_is_an_error(speech: SpeechAccount) -> None:
    from speech.models import SpeechBackend, Voice

    backend, _ = SpeechBackend.objects.get_or_create(
        name="nobody", base_url="http://127.0.0.1:9/v1", model="x"
    )
    Voice.objects.get_or_create(id="unreachable", backend=backend, engine_voice="x")
    until(lambda: "unreachable" in speech.voices())

    answer = speech.speak(voice="unreachable")

    assert answer.status_code == 502
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.characters) == ("backend_unavailable", 0)


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
    body = {
        "voice": remote["pcm"],
        "input": f"[[sim pace:2]] {TWO_SENTENCES}",
        "response_format": "pcm",
    }
    with httpx2.stream(
        "POST",
        f"{speech.url}/v1/audio/speech",
        json=body,
        headers=speech.headers,
        timeout=60,
        verify=False,
    ) as answer:
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


@contextmanager
def asked_by_hand(speech: SpeechAccount, **fields: Any) -> Iterator[sockets.socket]:
    """Send a request on a raw socket with a small receive buffer, and read nothing yet."""
    body = json.dumps({"voice": "ava", "response_format": "pcm", **fields}).encode()
    head = (
        "POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        f"authorization: Bearer {speech.key}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with sockets.socket() as raw:
        raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
        raw.settimeout(60)
        raw.connect(("127.0.0.1", speech.gateway.speech_port))
        raw.sendall(head.encode() + body)
        yield raw


def test_a_disconnected_client_of_a_stream_stops_the_engine(
    speech: SpeechAccount, remote: dict[str, str], speech_server: SpeechServer
) -> None:
    text = f"[[sim pace:1]] Quagga. {TWO_SENTENCES} {TWO_SENTENCES}"
    with asked_by_hand(speech, input=text, voice=remote["pcm"]) as raw:
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
    with asked_by_hand(speech, input=text, voice=remote["pcm"]):
        until(lambda: speech_server.account()["running"])
    row = speech.row_when_written()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert (row.characters, row.audio_ms) == (0, 0)


def test_a_reader_that_stalls_counts_as_disconnected(start_gateway: Callable[..., Gateway]) -> None:
    speech = speech_account(start_gateway(SVC_CLIENT_STALL_SECONDS="1"))
    with asked_by_hand(speech, input="This is a sentence that nobody hears. " * 100):
        row = speech.row_when_written()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.audio_ms < 100_000


def test_a_draining_server_ends_requests_that_outlast_the_drain(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    speech = speech_account(start_gateway(SVC_DRAIN_SECONDS="1"))
    text = f"[[sim pace:1]] {TWO_SENTENCES} {TWO_SENTENCES}"
    with (
        asked_by_hand(speech, input=text, voice=remote["pcm"]) as raw,
        httpx2.Client(headers=speech.headers, verify=NO_TLS) as kept,
    ):
        assert b"200 OK" in raw.recv(1000)
        assert kept.get(f"{speech.url}/v1/models").status_code == 200
        speech.gateway.command.process.send_signal(signal.SIGTERM)
        until(lambda: refuses(speech.url))
        body = {"voice": "ava", "input": "Hello."}
        refused = kept.post(f"{speech.url}/v1/audio/speech", json=body)
        while raw.recv(65536):
            pass
    [row] = until(lambda: [row for row in speech.rows() if row.voice == remote["pcm"]])

    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "proxy_error")
    assert (row.outcome, row.http_status) == ("interrupted", 200)
    assert speech.gateway.command.process.wait(60) == 0
