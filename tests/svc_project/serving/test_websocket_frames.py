"""The bounds on frames of one WebSocket, with raw bytes on a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.http11 import Request

from speech.wire import LARGEST_MESSAGE
from svc_project.serving.websocket_protocol import MOST_EXTRA_FRAMES, BoundedWebSocket
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount

TEXT, CONTINUATION, CLOSE, PING, PONG = 0x1, 0x0, 0x8, 0x9, 0xA
FIN = 0x80
START = b'{"type": "start", "voice": "ava"}'
FLOOD = 70_000
SECONDS = 60.0


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway)


def frame(first: int, content: bytes = b"") -> bytes:
    """One masked frame (RFC 6455, section 5.2), the mask zero."""
    size = len(content)
    head = bytes([first, 0x80 | size]) if size < 126 else struct.pack(">BBH", first, 0xFE, size)
    return head + bytes(4) + content


@contextmanager
def opened(speech: SpeechAccount) -> Iterator[socket.socket]:
    """A WebSocket after its handshake, before ``start``."""
    address = ("127.0.0.1", speech.gateway.speech_port)
    with closing(socket.create_connection(address, timeout=SECONDS)) as raw:
        raw.sendall(
            (
                "GET /v1/audio/speech/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
                f"connection: upgrade\r\nauthorization: Bearer {speech.key}\r\n"
                f"sec-websocket-key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                "sec-websocket-version: 13\r\n\r\n"
            ).encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += raw.recv(1)
        assert b" 101 " in answer
        yield raw


@contextmanager
def ready(speech: SpeechAccount) -> Iterator[socket.socket]:
    """A session that takes text."""
    with opened(speech) as raw:
        raw.sendall(frame(FIN | TEXT, START))
        opcode, said = next_frame(raw)
        assert (opcode, json.loads(said)["type"]) == (TEXT, "ready")
        yield raw


def exactly(raw: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = raw.recv(count - len(found))
        assert more, "the connection ended without a close frame"
        found += more
    return found


def next_frame(raw: socket.socket) -> tuple[int, bytes]:
    """Opcode and content of the next frame of the server."""
    first, size = exactly(raw, 2)
    if size == 126:
        (size,) = struct.unpack(">H", exactly(raw, 2))
    elif size == 127:
        (size,) = struct.unpack(">Q", exactly(raw, 8))
    return first & 0xF, exactly(raw, size)


def close_code(raw: socket.socket) -> int:
    """The code of the close frame; earlier frames are read."""
    while True:
        opcode, content = next_frame(raw)
        if opcode == CLOSE:
            return int(struct.unpack(">H", content[:2])[0])


def push(raw: socket.socket, content: bytes) -> None:
    """Send ``content``, or as much of it as the server reads before it closes."""
    try:
        raw.sendall(content)
    except (ConnectionError, TimeoutError):
        return


def test_a_message_in_tens_of_thousands_of_fragments_is_too_large(speech: SpeechAccount) -> None:
    with ready(speech) as raw:
        push(raw, frame(TEXT, b'{"type":"text","text":"') + frame(CONTINUATION) * FLOOD)
        assert close_code(raw) == 1009


@pytest.mark.parametrize("opcode", [PING, PONG], ids=["pings", "pongs"])
def test_a_flood_of_control_frames_ends_the_connection(speech: SpeechAccount, opcode: int) -> None:
    with ready(speech) as raw:
        push(raw, frame(FIN | opcode) * FLOOD)
        assert close_code(raw) == 1008


def test_the_largest_message_may_come_in_many_fragments(speech: SpeechAccount) -> None:
    """Some libraries send a fragment for each write."""
    message = json.dumps({"type": "text", "text": "Hello. ", "ignored": ""}).encode()
    message = message[:-2] + b"x" * (LARGEST_MESSAGE - len(message)) + message[-2:]
    size = LARGEST_MESSAGE // 512
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    with ready(speech) as raw:
        raw.sendall(
            frame(TEXT, parts[0])
            + b"".join(frame(CONTINUATION, part) for part in parts[1:-1])
            + frame(FIN | CONTINUATION, parts[-1])
            + frame(FIN | TEXT, b'{"type":"done"}')
        )
        seen = []
        while (found := next_frame(raw))[0] != CLOSE:
            seen.append(found)

    assert json.loads(seen[-1][1]) == {"type": "session.done"}
    assert seen[-2][1].startswith(b"RIFF")


def test_pings_between_messages_are_answered(speech: SpeechAccount) -> None:
    with ready(speech) as raw:
        raw.sendall(frame(FIN | PING, b"there?") * (MOST_EXTRA_FRAMES // 4))
        for _ in range(MOST_EXTRA_FRAMES // 4):
            assert next_frame(raw) == (PONG, b"there?")


def test_many_texts_in_one_write_are_all_spoken_in_their_order(speech: SpeechAccount) -> None:
    """The frames exceed the bytes parsed in one turn, and one read of the socket."""
    words = [f"word{number} " for number in range(900)]
    texts = b"".join(
        frame(FIN | TEXT, json.dumps({"type": "text", "text": word, "pad": "x" * 300}).encode())
        for word in words
    )
    with ready(speech) as raw:
        raw.sendall(texts + frame(FIN | TEXT, b'{"type":"cancel"}'))
        seen = []
        while (found := next_frame(raw))[0] != CLOSE:
            seen.append(found)

    assert json.loads(seen[-1][1]) == {"type": "session.done"}


class Written:
    """A transport that records its writes."""

    def __init__(self) -> None:
        self.frames = 0
        self.first = b""
        self.reads = [True]

    def get_extra_info(self, name: str) -> Any:
        return None

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, content: bytes) -> None:
        self.frames += 1
        self.first = self.first or content

    def pause_reading(self) -> None:
        self.reads.append(False)

    def resume_reading(self) -> None:
        self.reads.append(True)


def upgrading(application: Any, early: bytes = b"") -> tuple[BoundedWebSocket, Written]:
    """A connection whose handshake has arrived, with ``early`` behind it; and what is written on it."""
    config = uvicorn.Config(application, lifespan="off", ws_ping_interval=None, log_config=None)
    config.load()
    transport = Written()
    socket = BoundedWebSocket(config=config, server_state=ServerState(), app_state={})
    socket.connection_made(cast("asyncio.Transport", transport))
    handshake = {
        "host": "here",
        "upgrade": "websocket",
        "connection": "upgrade",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
    }
    socket.open(Request("/", Headers(handshake)), early=early, write_paused=False)
    return socket, transport


async def test_no_frame_is_answered_before_the_handshake() -> None:
    """The application looks a key up between taking the handshake and answering it."""
    accepted = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        for _ in range(3):
            await asyncio.sleep(0)
        await send({"type": "websocket.accept"})
        accepted.set()
        await receive()

    socket, transport = upgrading(application, frame(FIN | PING) + frame(FIN | TEXT, b"\xff"))
    await accepted.wait()

    assert transport.first.startswith(b"HTTP/1.1 101 ")
    socket.connection_lost(None)


async def test_a_large_read_is_parsed_in_turns_with_other_tasks() -> None:
    """As much as one read of the socket may hold, all pings: each is answered by a frame."""
    accepted = asyncio.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        accepted.set()
        await receive()

    socket, transport = upgrading(application)
    await accepted.wait()
    transport.frames = 0
    pings = 1000

    socket.data_received(frame(FIN | PING) * pings)

    assert transport.frames < pings / 2
    assert transport.reads.pop() is False
    turns = 0
    while transport.frames < pings:
        before = transport.frames
        await asyncio.sleep(0)
        assert 0 < transport.frames - before < pings / 2
        turns += 1
    assert turns > 1
    assert transport.reads.pop() is True
    socket.connection_lost(None)


NOT_UTF8 = b'{"type":"text","text":"\xff"}'


@pytest.mark.parametrize(
    "ending",
    {
        "with the close frame behind it": frame(FIN | TEXT, NOT_UTF8)
        + frame(FIN | CLOSE, struct.pack(">H", 1000)),
        "in a first fragment, of which no other comes": frame(TEXT, NOT_UTF8),
        "cut in a character": frame(TEXT, b"\xe2\x82") + frame(FIN | CONTINUATION),
    }.items(),
    ids=lambda ending: ending[0],
)
def test_text_that_is_not_utf8_closes_with_1007_at_once(
    speech: SpeechAccount, ending: tuple[str, bytes]
) -> None:
    log = speech.gateway.command.log
    before = log.stat().st_size
    with ready(speech) as raw:
        raw.sendall(ending[1])
        assert close_code(raw) == 1007
    assert b"Traceback" not in log.read_bytes()[before:]


def test_a_character_may_be_cut_between_fragments(speech: SpeechAccount) -> None:
    text = '{"type":"text","text":"Hé €. \U0001f600"}'.encode()
    parts = [frame(CONTINUATION, text[at : at + 1]) for at in range(1, len(text))]
    with ready(speech) as raw:
        raw.sendall(frame(TEXT, text[:1]) + b"".join(parts) + frame(FIN | CONTINUATION))
        raw.sendall(frame(FIN | TEXT, b'{"type":"done"}'))
        assert close_code(raw) == 1000
