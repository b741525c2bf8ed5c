"""Clients of a WebSocket session that stop reading: their errors and rows."""

from __future__ import annotations

import socket as sockets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until

STALL_SECONDS = 2.0
TEXT = "This is a sentence of some length. " * 100


@pytest.fixture
def impatient(start_gateway: Callable[..., Gateway]) -> SpeechAccount:
    return speech_account(start_gateway(SVC_CLIENT_STALL_SECONDS=str(STALL_SECONDS)))


@contextmanager
def unread_session(speech: SpeechAccount) -> Iterator[Conversation]:
    """A session with a small receive buffer that sends much text and reads nothing after ready."""
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", speech.gateway.speech_port))
    with speech.connect(sock=raw, max_queue=1) as socket:
        conversation = Conversation(socket)
        conversation.send(type="start", voice="ava")
        assert conversation.receive()["type"] == "ready"
        for _ in range(4):
            conversation.text(TEXT)
        conversation.done()
        yield conversation


def assert_stalled(speech: SpeechAccount) -> None:
    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("client_disconnected", 499, 4408)
    assert row.error_type == "invalid_request_error"
    assert 0 < row.sentences < 200


def test_nothing_is_synthesised_for_a_reader_that_stalls(impatient: SpeechAccount) -> None:
    began = time.monotonic()
    with unread_session(impatient):
        assert_stalled(impatient)
        assert time.monotonic() - began >= STALL_SECONDS


def test_a_reader_that_stalled_and_reads_again_gets_the_error(impatient: SpeechAccount) -> None:
    with unread_session(impatient) as session:
        assert_stalled(impatient)
        messages = session.rest()

        frames, error = messages[:-1], messages[-1]
        assert all(isinstance(frame, bytes) for frame in frames)
        assert isinstance(error, dict)
        assert error["error"]["type"] == "invalid_request_error"
        assert "read" in error["error"]["message"]
        assert session.close_code == 4408
    assert impatient.row_when_written().sentences == len(frames)


def test_a_reader_that_goes_on_stalling_loses_its_connection(impatient: SpeechAccount) -> None:
    with unread_session(impatient) as session:
        assert_stalled(impatient)
        until(lambda: open_connections(impatient) == 0)
        messages = session.rest()

        assert all(isinstance(message, bytes) for message in messages)
        assert session.socket.close_code == 1006


def open_connections(speech: SpeechAccount) -> int:
    """The open connections to the speech port."""
    end = f":{speech.gateway.speech_port:04X}"
    pid = speech.gateway.command.process.pid
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        fields = [line.split() for line in table][1:]
    return sum(line[1].endswith(end) and line[3] == "01" for line in fields)
