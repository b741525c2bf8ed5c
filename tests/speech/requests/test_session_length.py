"""A WebSocket session lasts as long as it is used, and ends when its client stops reading."""

from __future__ import annotations

import socket as sockets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tests.resilience.wire import frame, upgrade
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until

SHORT = 1.5
EVERY_TIMER = {
    name: str(SHORT)
    for name in (
        "SVC_HEAD_SECONDS", "SVC_BODY_SECONDS", "SVC_CLIENT_STALL_SECONDS",
        "SVC_SPEECH_START_SECONDS", "SVC_SPEECH_FIRST_BYTE_SECONDS", "SVC_SPEECH_TOTAL_SECONDS",
        "SVC_KEY_OUTAGE_SECONDS", "SVC_BACKEND_IDLE_SECONDS", "SVC_BACKEND_TOTAL_SECONDS",
        "SVC_DRAIN_SECONDS",
    )
}  # fmt: skip
"""The settings that bound how long something may take, but for the silence of a client."""
SENTENCE = "The morning train was late again.\n"


@pytest.fixture
def speech(gateway_with: Callable[..., Gateway]) -> SpeechAccount:
    """An account of a gateway whose timers are far below the length of the sessions here."""
    return speech_account(gateway_with(**EVERY_TIMER, SVC_WEBSOCKET_PING_SECONDS="0.2"))


def outlive_a_timer(speech: SpeechAccount) -> None:
    """Return when a timer that begins now has ended: the one of a head that does not come."""
    with sockets.create_connection(("127.0.0.1", speech.gateway.speech_port), timeout=60) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\n")
        while raw.recv(4096):
            pass


@contextmanager
def on_a_kept_connection(speech: SpeechAccount) -> Iterator[Conversation]:
    """A session whose upgrade is the second request of its connection."""
    raw = sockets.create_connection(("127.0.0.1", speech.gateway.speech_port), timeout=60)
    raw.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    answer = b""
    while b"uptime_s" not in answer or not answer.endswith(b"}"):
        part = raw.recv(4096)
        assert part, answer
        answer += part
    with speech.connect(sock=raw) as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava")
        assert session.receive()["type"] == "ready"
        yield session


@pytest.mark.long
@pytest.mark.parametrize("opened", [SpeechAccount.session, on_a_kept_connection])
def test_a_session_outlives_every_timer_of_the_server(
    speech: SpeechAccount, opened: Callable[[SpeechAccount], AbstractContextManager[Conversation]]
) -> None:
    with opened(speech) as session:
        for _ in range(4):
            outlive_a_timer(speech)
            session.text(SENTENCE)
            session.frame()
        session.done()
        assert session.rest() == [{"type": "session.done"}]
        assert session.close_code == 1000

    row = speech.row_when_written()
    assert (row.outcome, row.close_code) == ("success", None)
    assert (row.sentences, row.characters) == (4, 4 * len(SENTENCE))


def test_a_slow_reader_is_not_disconnected(speech: SpeechAccount) -> None:
    """A player reads sound at the pace of playing."""
    with speech.slow_session() as session:
        for _ in range(100):
            session.text(SENTENCE)
        session.done()
        for _ in range(10):
            time.sleep(SHORT / 4)
            session.frame()
        messages = session.rest()

        assert messages[-1] == {"type": "session.done"}
        assert len(messages) == 91
        assert session.close_code == 1000
    assert speech.row_when_written().outcome == "success"


def test_a_client_that_answers_no_ping_keeps_its_session(speech: SpeechAccount) -> None:
    with sockets.create_connection(("127.0.0.1", speech.gateway.speech_port), timeout=60) as raw:
        heard = b""

        def hear() -> None:
            nonlocal heard
            more = raw.recv(65536)
            assert more, "closed before its end"
            heard += more

        raw.sendall(upgrade(speech.key) + frame(b'{"type": "start", "voice": "ava"}'))
        while heard.count(b"\x89\x04") < 10:  # pings
            hear()
        raw.sendall(frame(b'{"type": "text", "text": "Hello there."}') + frame(b'{"type": "done"}'))
        while b"session.done" not in heard:
            hear()

    assert b"101 " in heard[:20]
    assert b"RIFF" in heard


# -- clients that stop reading


@contextmanager
def unread_session(speech: SpeechAccount) -> Iterator[Conversation]:
    """A session that gets much text and whose client reads nothing until its row is written."""
    began = time.monotonic()
    with speech.slow_session() as session:
        for _ in range(4):
            session.text("This is a sentence of some length. " * 100)
        session.done()
        row = speech.row_when_written()
        assert time.monotonic() - began >= SHORT
        assert (row.outcome, row.http_status, row.close_code) == ("client_disconnected", 499, 4408)
        assert row.error_type == "invalid_request_error"
        assert 0 < row.sentences < 200
        yield session


def test_a_reader_that_stalled_and_reads_again_gets_the_error(speech: SpeechAccount) -> None:
    def is_told() -> bool:
        """False where this host was too slow to read again before the connection was ended."""
        account = speech_account(speech.gateway)
        with unread_session(account) as session:
            *frames, error = session.rest()
            if session.socket.close_code == 1006:
                return False
        assert all(isinstance(each, bytes) for each in frames)
        assert isinstance(error, dict)
        assert error["error"]["type"] == "invalid_request_error"
        assert "read" in error["error"]["message"]
        assert session.close_code == 4408
        assert account.row_when_written().sentences == len(frames)
        return True

    until(is_told)


def test_a_reader_that_goes_on_stalling_loses_its_connection(speech: SpeechAccount) -> None:
    with unread_session(speech) as session:
        until(lambda: open_connections(speech) == 0)
        messages = session.rest()

        assert all(isinstance(message, bytes) for message in messages)
        assert session.socket.close_code == 1006


def open_connections(speech: SpeechAccount) -> int:
    """The open connections to the speech port."""
    end = f":{speech.gateway.speech_port:04X}"
    pid = speech.gateway.command.worker
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        fields = [line.split() for line in table][1:]
    return sum(line[1].endswith(end) and line[3] == "01" for line in fields)


def test_a_reader_of_a_stream_that_stalls_counts_as_disconnected(speech: SpeechAccount) -> None:
    with speech.asking(input="This is a sentence that nobody hears. " * 100):
        row = speech.row_when_written()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.audio_ms < 100_000
