"""A WebSocket session lasts as long as it is used, longer than every timer of the server."""

from __future__ import annotations

import base64
import os
import socket as sockets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount, seconds

SHORT = 1.5
SPOKEN_SECONDS = 6.0
IDLE = {"SVC_SPEECH_IDLE_SECONDS": "5"}
EVERY_TIMER = {
    name: str(SHORT)
    for name in (
        "SVC_HEAD_SECONDS", "SVC_BODY_SECONDS", "SVC_CLIENT_STALL_SECONDS",
        "SVC_WEBSOCKET_PING_SECONDS", "SVC_SPEECH_START_SECONDS", "SVC_SPEECH_FIRST_BYTE_SECONDS",
        "SVC_SPEECH_TOTAL_SECONDS", "SVC_KEY_OUTAGE_SECONDS", "SVC_BACKEND_IDLE_SECONDS",
        "SVC_BACKEND_TOTAL_SECONDS", "SVC_DRAIN_SECONDS",
    )
}  # fmt: skip
"""The settings that bound how long something may take, far below the length of the sessions here.

``IDLE`` bounds the silence of a client, which a busy machine lengthens."""

SENTENCE = "The morning train was late again.\n"


def spoken_steadily(session: Conversation, pause: float) -> int:
    """Send and receive one sentence after the other for ``SPOKEN_SECONDS``; return their number."""
    begun = time.monotonic()
    texts = 0
    while time.monotonic() < begun + SPOKEN_SECONDS:
        session.text(SENTENCE)
        session.frame()
        texts += 1
        time.sleep(pause)
    return texts


def assert_ends_well(speech: SpeechAccount, session: Conversation, sentences: int) -> None:
    session.done()
    assert session.rest() == [{"type": "session.done"}]
    assert session.close_code == 1000
    row = speech.row_when_written()
    assert (row.outcome, row.close_code) == ("success", None)
    assert (row.sentences, row.characters) == (sentences, sentences * len(SENTENCE))


def test_a_session_outlives_every_timer_of_the_server(
    start_gateway: Callable[..., Gateway],
) -> None:
    speech = speech_account(start_gateway(**EVERY_TIMER, **IDLE))

    with speech.session() as session:
        texts = spoken_steadily(session, pause=SHORT / 2)
        assert_ends_well(speech, session, texts)


def test_an_idle_session_outlives_every_timer_except_the_idle_timeout(
    start_gateway: Callable[..., Gateway],
) -> None:
    speech = speech_account(start_gateway(**EVERY_TIMER))

    with speech.session() as session:
        time.sleep(2 * SHORT)
        session.text(SENTENCE)
        session.frame()
        time.sleep(2 * SHORT)
        session.text(SENTENCE)
        session.frame()
        assert_ends_well(speech, session, 2)


def test_a_slow_engine_may_take_longer_than_the_idle_timeout(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    speech = speech_account(start_gateway(SVC_SPEECH_IDLE_SECONDS="1"))

    with speech.session(voice=remote["pcm"]) as session:
        began = time.monotonic()
        session.text("[[sim pace:1]] The morning train was late again, as it often is here.\n")
        heard = seconds(session.frame())
        assert time.monotonic() - began > 1.5
        session.done()
        assert session.rest() == [{"type": "session.done"}]

    assert heard > 1.5


@contextmanager
def slow_reader(speech: SpeechAccount) -> Iterator[Conversation]:
    """A session on a small receive buffer that holds few unread messages."""
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", speech.gateway.speech_port))
    with speech.connect(sock=raw, max_queue=1) as socket:
        conversation = Conversation(socket)
        conversation.send(type="start", voice="ava")
        assert conversation.receive()["type"] == "ready"
        yield conversation


def test_a_slow_reader_is_not_disconnected(
    start_gateway: Callable[..., Gateway],
) -> None:
    """A player reads sound at the pace of playing."""
    timers = {"SVC_CLIENT_STALL_SECONDS": "1.5", "SVC_WEBSOCKET_PING_SECONDS": "0.2"}
    speech = speech_account(start_gateway(**timers))

    with slow_reader(speech) as session:
        for _ in range(100):
            session.text(SENTENCE)
        session.done()
        for _ in range(20):
            time.sleep(0.3)
            session.frame()
        messages = session.rest()

        assert messages[-1] == {"type": "session.done"}
        assert len(messages) == 81
        assert session.close_code == 1000
    assert speech.row_when_written().outcome == "success"


def test_a_client_that_answers_no_ping_keeps_its_session(
    start_gateway: Callable[..., Gateway],
) -> None:
    speech = speech_account(start_gateway(SVC_WEBSOCKET_PING_SECONDS="0.2"))
    upgrade = (
        "GET /v1/audio/speech/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
        f"connection: upgrade\r\nauthorization: Bearer {speech.key}\r\n"
        f"sec-websocket-key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
        "sec-websocket-version: 13\r\n\r\n"
    )

    with sockets.create_connection(("127.0.0.1", speech.gateway.speech_port)) as raw:
        raw.settimeout(60)
        raw.sendall(upgrade.encode())
        assert b"101 " in raw.recv(4096)
        raw.sendall(frame('{"type": "start", "voice": "ava"}'))
        time.sleep(3)
        raw.sendall(frame('{"type": "text", "text": "Hello there."}') + frame('{"type": "done"}'))
        heard = b""
        while b"session.done" not in heard:
            heard += (more := raw.recv(65536))
            assert more, "closed before its end"

    assert b"RIFF" in heard
    assert heard.count(b"\x89\x04") >= 10  # pings


def frame(text: str) -> bytes:
    """A short masked text frame (RFC 6455, section 5.2), the mask zero."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode()


def test_a_session_outlives_the_idle_time_of_the_connection_that_it_was_opened_on(
    start_gateway: Callable[..., Gateway],
) -> None:
    """The upgrade is the second request of its connection."""
    speech = speech_account(start_gateway(**EVERY_TIMER, **IDLE))
    raw = sockets.create_connection(("127.0.0.1", speech.gateway.speech_port))
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
        texts = spoken_steadily(session, pause=SHORT / 2)
        assert_ends_well(speech, session, texts)
