"""Refused requests of any kind, and clones, have a limit: those above it end in 429 on sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.speech.requests.test_reading_limits import WORDLESS
from tests.speech.requests.test_unspoken_texts import cut
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.errors import kind_of
from tests.support.until import until


@pytest.fixture
def strict(gateway_with: Callable[..., Gateway]) -> Gateway:
    """An organization with a limit may have as many requests refused, one without ten."""
    return gateway_with(SVC_REFUSED_REQUESTS_PER_MINUTE="1", SVC_CLONES_PER_HOUR="1")


def assert_refused_too_often(status: int, headers: Mapping[str, str]) -> None:
    assert status == 429
    assert headers["x-quota-reason"] == "refused_requests_per_minute"
    assert int(headers["retry-after"]) >= 1


def test_refused_requests_and_sessions_end_in_429(strict: Gateway) -> None:
    speech = speech_account(strict, speech_requests_per_minute=6)
    assert speech.speak("Hi.", voice="nobody").status_code == 400
    assert speech.speak(WORDLESS).status_code == 400
    assert speech.post(b"[]").status_code == 400
    codes = []
    for message in ('{"type":"text","text":"Hi."}', "{", '{"type":"start","voice":"nobody"}'):
        with speech.connect() as socket:
            socket.send(message)
            assert json.loads(socket.recv())["type"] == "error"
            codes.append(_close_code(socket))
    assert codes == [4400, 4400, 4404]

    def refused() -> httpx2.Response | None:
        answer = speech.speak("Hi.", speed=9)
        return answer if answer.status_code == 429 else None

    refusal = until(refused)
    assert refusal.json()["error"]["type"] == "quota_error"
    assert_refused_too_often(refusal.status_code, refusal.headers)

    def is_refused() -> bool:
        """On a slow host a request is refilled meanwhile."""
        speech.speak("Hi.", speed=9)
        try:
            with speech.connect():
                return False
        except InvalidStatus as error:
            return error.response.status_code == 429

    until(is_refused)


def _close_code(socket: ClientConnection) -> int | None:
    with pytest.raises(ConnectionClosed):
        socket.recv(timeout=60)
    return socket.close_code


def test_sessions_that_are_fed_and_cancelled_end_in_429(strict: Gateway) -> None:
    speech = speech_account(strict, speech_requests_per_minute=20)

    def cancel(texts: list[str]) -> None:
        with speech.session() as session:
            for text in texts:
                session.text(text)
            session.send(type="cancel")
            session.rest()
            assert session.close_code == 1000

    for _ in range(3):
        cancel(["The ", "morning "] * 20)

    def is_refused() -> bool:
        """After two such sessions; after more on a slow host, where requests are refilled meanwhile."""
        try:
            cancel(cut("a. b "))
        except InvalidStatus as error:
            reason = speech.speak("Hi.").headers.get("x-quota-reason")
            return (error.response.status_code, reason) == (429, "refused_requests_per_minute")
        return False

    until(is_refused)


def test_invalid_creations_and_names_that_are_taken_end_in_429_before_a_body_is_sent(
    strict: Gateway,
) -> None:
    client = speech_account(strict)
    answers = [client.create("Anna", audio_b64="#").status_code for _ in range(10)]
    assert answers == [400] * 10

    def unsent() -> tuple[int, dict[str, str]] | None:
        """The answer to a head whose body is not sent; a slow host refills a request meanwhile."""
        client.create("Anna", audio_b64="#")
        with RawClient(strict, strict.speech_port) as raw:
            raw.send(
                (
                    "POST /v1/voices HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 15000000\r\n"
                    f"authorization: Bearer {client.key}\r\n\r\n"
                ).encode()
            )
            raw.set_timeout(5)
            try:
                status, headers, _ = raw.answer()
            except TimeoutError:
                return None
        return status, headers

    assert_refused_too_often(*until(unsent))

    client = speech_account(strict)
    assert client.create("Anna").status_code == 201
    assert client.create("anna").status_code == 409
    last = until(lambda: found if (found := client.create("anna")).status_code == 429 else None)
    assert_refused_too_often(last.status_code, last.headers)


def test_creations_an_hour_have_a_limit(strict: Gateway) -> None:
    client = speech_account(strict)

    first, second = client.create("Anna"), client.create("Bert")

    assert first.status_code == 201
    assert kind_of(second) == (429, "quota_error")
    assert second.headers["x-quota-reason"] == "clones_per_hour"
    assert 1 <= int(second.headers["retry-after"]) <= 3600
    assert client.own() == [first.json()["id"]]
