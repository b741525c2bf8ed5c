"""Limits that end or slow a WebSocket session that is idle or sends too much."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from speech.requests.session_bounds import BURST_SECONDS, Pace
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount, seconds

IDLE_SECONDS = 3
LONGEST_SECONDS = 3
PER_SECOND = 20
SENTENCE = "The morning train was late again.\n"


@pytest.fixture
def speech(gateway_with: Callable[..., Gateway]) -> SpeechAccount:
    """An account of a gateway with short timeouts that reads few messages."""
    impatient = gateway_with(
        SVC_SPEECH_IDLE_SECONDS=str(IDLE_SECONDS), SVC_SPEECH_MESSAGES_PER_SECOND=str(PER_SECOND)
    )
    return speech_account(impatient)


def error_of(last: bytes | dict[str, Any]) -> str:
    """The error in the last message."""
    assert isinstance(last, dict), "a frame of audio where an error was expected"
    message: str = last["error"]["message"]
    return message


@pytest.mark.long
@pytest.mark.parametrize(
    ("message", "pause"),
    [
        ({"type": "text", "text": ""}, IDLE_SECONDS / 8),
        ({"type": "flush"}, IDLE_SECONDS / 8),
        # The next message is always there already, so the session never waits for one.
        ({"type": "text", "text": ""}, 0),
    ],
    ids=["empty texts", "flushes", "a flood of empty texts"],
)
def test_messages_without_text_do_not_keep_a_session_open(
    speech: SpeechAccount, message: dict[str, str], pause: float
) -> None:
    deadline = time.monotonic() + 60
    told: list[Any] = []
    with speech.session() as session:
        while not told and time.monotonic() < deadline:
            with suppress(ConnectionClosed):
                session.send(**message)
            with suppress(TimeoutError):
                told.append(json.loads(session.socket.recv(pause)))
        assert "was idle" in error_of(told[0])
        assert session.close_code == 4408


def test_a_session_is_idle_after_a_sentence_that_the_voice_cannot_read(
    speech: SpeechAccount,
) -> None:
    with speech.session() as session:
        session.text("这是一个中文句子。\n")
        unread, idle = session.rest()
        assert session.close_code == 4408

    assert "Chinese" in error_of(unread)
    assert "was idle" in error_of(idle)


@pytest.mark.long
def test_a_space_keeps_a_session_open(speech: SpeechAccount) -> None:
    with speech.session() as session:
        for _ in range(4):
            time.sleep(IDLE_SECONDS / 2)
            session.text(" ")
        session.text("Hello.")
        session.done()
        assert session.rest()[-1] == {"type": "session.done"}


def test_a_slow_engine_may_take_longer_than_the_idle_timeout(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    with speech.session(voice=remote["pcm"]) as session:
        began = time.monotonic()
        session.text("[[sim pace:1]] The morning train was late again, as it often is in winter.\n")
        heard = seconds(session.frame())
        assert time.monotonic() - began > IDLE_SECONDS
        session.done()
        assert session.rest() == [{"type": "session.done"}]

    assert heard > IDLE_SECONDS


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


def test_a_session_has_a_longest_duration(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    """Frames that were sent by then are charged, and nothing else."""
    speech = speech_account(start_gateway(SVC_SPEECH_SESSION_SECONDS=str(LONGEST_SECONDS)))
    text, frames = f"[[sim pace:4]] {SENTENCE}", 0
    began = time.monotonic()
    with speech.session(voice=remote["pcm"]) as session:
        with suppress(ConnectionClosed):
            session.text(text)
            while isinstance(message := session.socket.recv(60), bytes):
                frames += 1
                session.text(text)
        assert time.monotonic() - began >= LONGEST_SECONDS
        assert "another" in error_of(json.loads(message))
        assert session.close_code == 4408

    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("client_error", 101, 4408)
    assert (row.sentences, row.characters) == (frames, frames * len(text))


def test_a_pace_allows_a_burst_and_refills_and_one_of_zero_is_unlimited() -> None:
    pace = Pace(10)
    burst = int(10 * BURST_SECONDS)

    assert all(pace.early(0.0) <= 1e-9 for _ in range(burst))
    assert pace.early(0.0) == pytest.approx(0.1)
    assert pace.early(1.0) <= 0
    assert all(pace.early(1000.0) <= 1e-9 for _ in range(burst))
    assert pace.early(1000.0) > 0
    assert all(Pace(0).early(0.0) <= 0 for _ in range(10_000))
