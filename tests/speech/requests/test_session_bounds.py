"""Limits that end or slow a WebSocket session that is idle or sends too much."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from speech.requests.session_bounds import BURST_SECONDS, Pace
from tests.support.gateways import Served, another_gateway
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount

IDLE_SECONDS = 3
LONGEST_SECONDS = 3
PER_SECOND = 20
SENTENCE = "The morning train was late again.\n"


@pytest.fixture(scope="module")
def impatient(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with short timeouts that reads few messages."""
    settings = {
        "SVC_SPEECH_IDLE_SECONDS": str(IDLE_SECONDS),
        "SVC_SPEECH_MESSAGES_PER_SECOND": str(PER_SECOND),
    }
    with another_gateway(served, tmp_path_factory.mktemp("impatient"), **settings) as started:
        yield started


@pytest.fixture
def speech(impatient: Served, gateway: Gateway) -> SpeechAccount:
    """An account of the impatient gateway."""
    port, speech_port = impatient.port, impatient.speech_port
    return speech_account(
        replace(gateway, command=impatient.command, port=port, speech_port=speech_port)
    )


def error_of(last: bytes | dict[str, Any]) -> str:
    """The error in the last message."""
    assert isinstance(last, dict), "a frame of audio where an error was expected"
    message: str = last["error"]["message"]
    return message


def assert_ends_as_idle(session: Conversation, message: str, pause: float) -> None:
    """The session ends as idle, however often ``message`` is sent."""
    deadline = time.monotonic() + 60
    with suppress(ConnectionClosed):
        while time.monotonic() < deadline:
            session.socket.send(message)
            time.sleep(pause)
    assert time.monotonic() < deadline, "not closed"
    assert "was idle" in error_of(session.rest()[-1])
    assert session.close_code == 4408


def test_messages_without_text_do_not_keep_a_session_open(speech: SpeechAccount) -> None:
    for message in ({"type": "text", "text": ""}, {"type": "flush"}):
        with speech.session() as session:
            assert_ends_as_idle(session, json.dumps(message), IDLE_SECONDS / 8)


def test_a_flood_of_empty_texts_does_not_keep_a_session_open(speech: SpeechAccount) -> None:
    """The next message is always there already, so the session never waits for one."""
    with speech.session() as session:
        assert_ends_as_idle(session, '{"type":"text","text":""}', 0)


def test_a_space_keeps_a_session_open(speech: SpeechAccount) -> None:
    with speech.session() as session:
        for _ in range(4):
            time.sleep(IDLE_SECONDS / 2)
            session.text(" ")
        session.text("Hello.")
        session.done()
        assert session.rest()[-1] == {"type": "session.done"}


def test_messages_above_a_burst_are_read_at_a_steady_pace(speech: SpeechAccount) -> None:
    burst, more = int(PER_SECOND * BURST_SECONDS), 3 * PER_SECOND
    with speech.session() as session:
        began = time.monotonic()
        for _ in range(burst + more):
            session.text("a ")
        session.done()
        *frames, last = session.rest()
        took = time.monotonic() - began

    assert last == {"type": "session.done"}
    assert frames
    assert took >= more / PER_SECOND


def test_a_session_has_a_longest_duration(start_gateway: Callable[..., Gateway]) -> None:
    """Frames that were sent by then are charged, and nothing else."""
    speech = speech_account(start_gateway(SVC_SPEECH_SESSION_SECONDS=str(LONGEST_SECONDS)))
    began = time.monotonic()
    with speech.session() as session:
        with suppress(ConnectionClosed):
            while time.monotonic() < began + 20 * LONGEST_SECONDS:
                session.text(SENTENCE)
                time.sleep(0.3)
        assert time.monotonic() - began >= LONGEST_SECONDS
        *frames, last = session.rest()

    assert "another" in error_of(last)
    assert session.close_code == 4408
    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4408)
    assert (row.sentences, row.characters) == (len(frames), len(frames) * len(SENTENCE))


def test_a_pace_allows_a_burst_and_refills() -> None:
    pace = Pace(10)
    burst = int(10 * BURST_SECONDS)

    assert all(pace.early(0.0) <= 1e-9 for _ in range(burst))
    assert pace.early(0.0) == pytest.approx(0.1)
    assert pace.early(1.0) <= 0
    assert all(pace.early(1000.0) <= 1e-9 for _ in range(burst))
    assert pace.early(1000.0) > 0


def test_a_pace_of_zero_is_unlimited() -> None:
    pace = Pace(0)

    assert all(pace.early(0.0) <= 0 for _ in range(10_000))
