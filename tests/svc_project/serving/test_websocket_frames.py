"""The bounds on frames of one WebSocket, with raw bytes on a real socket."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from speech.wire import LARGEST_MESSAGE
from svc_project.serving.websocket_protocol import MOST_EXTRA_FRAMES
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount

TEXT, CONTINUATION, CLOSE, PING, PONG = 0x1, 0x0, 0x8, 0x9, 0xA
FIN = 0x80
START = b'{"type": "start", "voice": "ava"}'
FLOOD = 70_000


@pytest.fixture
def speech(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway)


def frame(first: int, content: bytes = b"") -> bytes:
    """One masked frame (RFC 6455, section 5.2), the mask zero."""
    size = len(content)
    head = bytes([first, 0x80 | size]) if size < 126 else struct.pack(">BBH", first, 0xFE, size)
    return head + bytes(4) + content


@contextmanager
def opened(speech: SpeechAccount) -> Iterator[RawClient]:
    """A WebSocket after its handshake, before ``start``."""
    with RawClient(speech.gateway, speech.gateway.speech_port) as client:
        assert b" 101 " in client.upgrade(speech.key)
        yield client


@contextmanager
def ready(speech: SpeechAccount) -> Iterator[RawClient]:
    """A session that takes text."""
    with opened(speech) as raw:
        raw.send(frame(FIN | TEXT, START))
        opcode, said = next_frame(raw)
        assert (opcode, json.loads(said)["type"]) == (TEXT, "ready")
        yield raw


def exactly(client: RawClient, count: int) -> bytes:
    while len(client.received) < count:
        assert client.read(), "the connection ended without a close frame"
    found, client.received = client.received[:count], client.received[count:]
    return found


def next_frame(raw: RawClient) -> tuple[int, bytes]:
    """Opcode and content of the next frame of the server."""
    first, size = exactly(raw, 2)
    if size == 126:
        (size,) = struct.unpack(">H", exactly(raw, 2))
    elif size == 127:
        (size,) = struct.unpack(">Q", exactly(raw, 8))
    return first & 0xF, exactly(raw, size)


def close_code(raw: RawClient) -> int:
    """The code of the close frame; earlier frames are read."""
    while True:
        opcode, content = next_frame(raw)
        if opcode == CLOSE:
            return int(struct.unpack(">H", content[:2])[0])


def push(client: RawClient, content: bytes) -> None:
    """Send ``content``, or as much of it as the server reads before it closes."""
    with suppress(ConnectionError, TimeoutError):
        client.send(content)


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
        raw.send(
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
        raw.send(frame(FIN | PING, b"there?") * (MOST_EXTRA_FRAMES // 4))
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
        raw.send(texts + frame(FIN | TEXT, b'{"type":"cancel"}'))
        seen = []
        while (found := next_frame(raw))[0] != CLOSE:
            seen.append(found)

    assert json.loads(seen[-1][1]) == {"type": "session.done"}


NOT_UTF8 = b'{"type":"text","text":"secret \xff"}'


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
        raw.send(ending[1])
        assert close_code(raw) == 1007
    logged = log.read_bytes()[before:]
    assert [word for word in (b"Traceback", b"secret", b"UTF-8") if word in logged] == []


def test_a_character_may_be_cut_between_fragments(speech: SpeechAccount) -> None:
    text = '{"type":"text","text":"Hé €. \U0001f600"}'.encode()
    parts = [frame(CONTINUATION, text[at : at + 1]) for at in range(1, len(text))]
    with ready(speech) as raw:
        raw.send(frame(TEXT, text[:1]) + b"".join(parts) + frame(FIN | CONTINUATION))
        raw.send(frame(FIN | TEXT, b'{"type":"done"}'))
        assert close_code(raw) == 1000
