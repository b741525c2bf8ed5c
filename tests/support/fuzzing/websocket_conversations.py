"""WebSocket connections byte by byte: valid and broken handshakes, then valid and broken frames."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from random import Random

from tests.support.fuzzing.byte_edits import cut, edited
from tests.support.fuzzing.http_conversations import Asked, Conversation
from tests.support.fuzzing.http_tokens import HOST

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
FIN, RSV1 = 0x80, 0x40
DEFLATE = "sec-websocket-extensions: permessage-deflate"

REQUEST_LINES = (
    *("POST /v1/audio/speech/stream HTTP/1.1", "HEAD /v1/audio/speech/stream HTTP/1.1"),
    *("GET /v1/audio/speech/stream HTTP/1.0", "GET /v1/audio/speech/stream HTTP/2.0"),
    *("GET /v1/audio/speech/stream/ HTTP/1.1", "GET /v1/audio/speech/stream?a=b HTTP/1.1"),
    *("GET /v1/audio/speech HTTP/1.1", "GET /v1/models HTTP/1.1", "GET / HTTP/1.1"),
    *("GET http://127.0.0.1/v1/audio/speech/stream HTTP/1.1", "GET * HTTP/1.1"),
    *("GET /%76%31/audio/speech/stream HTTP/1.1", "GET /v1/audio/speech/str%C3%28eam HTTP/1.1"),
    *("CONNECT /v1/audio/speech/stream HTTP/1.1", "GET  /v1/audio/speech/stream HTTP/1.1"),
)
REPLACED = {
    "host": ("", "host: evil.example", "host: 127.0.0.1\r\nhost: 127.0.0.1", "host: [::1", "host:"),
    "upgrade": (
        *(
            *("", "upgrade: h2c", "upgrade: websocket, h2c", "upgrade: WebSocket"),
            "upgrade: websocket ",
        ),
        *(
            "upgrade: websocket\r\nupgrade: websocket",
            "upgrade: h2c\r\nupgrade: websocket",
            "upgrade:",
        ),
        *("upgrade: websocket/13", "upgrade: \x01", "upgrade: web socket", "upgrade: ,"),
    ),
    "connection": (
        *("", "connection: close", "connection: keep-alive, Upgrade", "connection: upgrade, close"),
        *(
            "connection: keep-alive\r\nconnection: upgrade",
            "connection: upgrade\r\nconnection: close",
        ),
        *(
            "connection: ,upgrade,",
            "connection: up grade",
            "connection: upgrade;a",
            'connection: "upgrade"',
        ),
    ),
    "sec-websocket-version": (
        *(
            "",
            "sec-websocket-version: 12",
            "sec-websocket-version: 99",
            "sec-websocket-version: 13, 8",
        ),
        *("sec-websocket-version: 13\r\nsec-websocket-version: 13", "sec-websocket-version: \xb2"),
    ),
    "sec-websocket-key": (
        *("", "sec-websocket-key: short", "sec-websocket-key: %%%", "sec-websocket-key: \xe9" * 1),
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAB==",
    ),
    "authorization": (
        *("", "authorization: Bearer sk_nobody", "authorization: Basic YTpi", "authorization:"),
        "authorization: Bearer a\r\nauthorization: Bearer b",
    ),
}
ADDED = (
    "content-length: 5",
    "content-length: 0",
    "content-length: -1",
    "transfer-encoding: chunked",
    "transfer-encoding: gzip",
    "expect: 100-continue",
    "cookie: a=" + "b" * 9_000,
    "x-long: " + "a" * 40_000,
    "x-one: \xe9\xff",
    "x-empty:",
    "x one: 1",
    "x-one : 1",
    "x-one: a\x7fb",
    "origin: https://evil.example",
    "origin: null\r\norigin: https://evil.example",
    "sec-websocket-protocol: a, b",
    "sec-websocket-protocol: \xe9,,",
    "sec-websocket-protocol: realtime\r\nsec-websocket-protocol: openai",
    "cookie: a=b\r\ncookie: sessionid=c",
    "trailer: x-one",
    "te: trailers",
    "\r\n".join(f"x-{number}: 1" for number in range(110)),
)
EXTENSIONS = (
    DEFLATE,
    DEFLATE + "; client_max_window_bits",
    DEFLATE + "; server_max_window_bits=8; client_no_context_takeover",
    DEFLATE + "; server_max_window_bits=99",
    DEFLATE + "; a=b, permessage-deflate",
    DEFLATE + "\r\n" + DEFLATE,
    "sec-websocket-extensions: x-webkit-deflate-frame",
    "sec-websocket-extensions: ;;,=",
    "sec-websocket-extensions: permessage-deflate; client_max_window_bits=\xe9",
)
START = {"type": "start", "voice": "ava", "response_format": "pcm"}
MESSAGES = (
    *(json.dumps(START), json.dumps(START), '{"type": "text", "text": "Hi."}', '{"type": "done"}'),
    *('{"type": "cancel"}', '{"type": "flush"}', "[]", "", "{", '{"type": "\\ud800"}', "[" * 500),
    '{"type": "text", "text": "H\xe9llo \u20ac \U0001f600."}',
)
CODES = (0, 999, 1000, 1001, 1004, 1005, 1006, 1007, 1012, 1015, 2000, 3000, 4999, 5000, 65535)
PIECES = (
    *(
        *(b"\x81\x80\0\0\0\0", b"\x88\x80\0\0\0\0", b"\x89\x80\0\0\0\0", b"\x01\x80\0\0\0\0"),
        b"\x80\x80\0\0\0\0",
    ),
    *(
        *(b"\x81\xfe", b"\x81\xff", b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\xff", b"\0"),
        b"\xc1\x80\0\0\0\0",
    ),
    *(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", b"\r\n\r\n", b"\r\n", b": ", b"\x88\x00"),
)


class Conversations:
    """Makes the connection of a seed, always the same."""

    def __init__(self, key: str) -> None:
        self._key = key

    def make(self, seed: int) -> Conversation:
        random = Random(seed)
        handshake, is_valid, deflates = self._handshake(random)
        frames = _frames(random, deflates=deflates)
        content = handshake + frames
        asked = [Asked(frozenset({101}))] if is_valid else []
        if random.random() < 0.3:
            # Mostly behind the handshake: a damaged one ends everything.
            if random.random() < 0.7 and frames:
                content = handshake + edited(random, frames, PIECES)
            else:
                content, asked = edited(random, content, PIECES), []
        writes = cut(random, content)
        if random.random() < 0.5:
            # The frames behind the 101, as most clients send them.
            writes = [handshake, *cut(random, content[len(handshake) :])]
            writes = writes if content.startswith(handshake) else cut(random, content)
        return Conversation(seed, True, writes, asked, hangs_up=random.random() < 0.1)

    def _handshake(self, random: Random) -> tuple[bytes, bool, bool]:
        """Return its bytes, whether it has to be accepted, and whether it asks for compression."""
        line = "GET /v1/audio/speech/stream HTTP/1.1"
        headers = {
            "host": HOST,
            "upgrade": "upgrade: websocket",
            "connection": "connection: Upgrade",
            "sec-websocket-version": "sec-websocket-version: 13",
            "sec-websocket-key": "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
            "authorization": f"authorization: Bearer {self._key}",
        }
        is_valid, deflates, added = True, random.random() < 0.3, []
        if deflates:
            added.append(DEFLATE)
        for _ in range(random.choices((0, 1, 2), (6, 3, 1))[0]):
            is_valid = False
            kind = random.randrange(6)
            if kind == 0:
                line = random.choice(REQUEST_LINES)
            elif kind == 1:
                added.append(random.choice(EXTENSIONS))
            elif kind == 2:
                added.append(random.choice(ADDED))
            else:
                name = random.choice(list(REPLACED))
                headers[name] = random.choice(REPLACED[name])
        lines = [*headers.values(), *added]
        random.shuffle(lines)
        head = "\r\n".join([line, *(each for each in lines if each)]) + "\r\n\r\n"
        return head.encode("latin-1"), is_valid, deflates


def frame(
    random: Random, first: int, payload: bytes, *, masked: bool = True, length: int | None = None
) -> bytes:
    """Write a client's frame; ``length`` is what it says of itself, right or wrong."""
    size = len(payload) if length is None else length
    mask = random.randbytes(4) if masked else b""
    bit = 0x80 if masked else 0
    form = random.choices((0, 1, 2), (20, 1, 1))[0]
    if size < 126 and form == 0:
        head = bytes((first, bit | size))
    elif size < 65536 and form < 2:
        head = struct.pack(">BBH", first, bit | 126, size)
    else:
        head = struct.pack(">BBQ", first, bit | 127, size)
    if mask:
        payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return head + mask + payload


def _frames(random: Random, *, deflates: bool) -> bytes:
    found = [_one(random, deflates=deflates) for _ in range(random.choice((0, 1, 2, 3, 6, 10)))]
    if random.random() < 0.7:
        start = json.dumps(START).encode()
        found.insert(0, bytes((FIN | TEXT, 0x80 | len(start))) + bytes(4) + start)
    if random.random() < 0.5:
        found.append(frame(random, FIN | CLOSE, struct.pack(">H", 1000)))
    return b"".join(found)


def _one(random: Random, *, deflates: bool) -> bytes:
    """Make one message, whole or in fragments, or a broken frame."""
    payload = random.choice(MESSAGES).encode()
    if deflates and random.random() < 0.2:
        content = _deflated(random.choice((payload, payload, b"a" * 400_000)))
        return frame(random, FIN | RSV1 | TEXT, random.choice((content, content[:-2], b"\xff" * 9)))
    kind = random.choices(("text", "fragments", "control", "broken"), (4, 2, 3, 6))[0]
    if kind == "text":
        return frame(random, FIN | random.choice((TEXT, TEXT, TEXT, BINARY)), payload)
    if kind == "fragments":
        return _fragments(random, payload)
    return _control(random) if kind == "control" else _broken(random, payload)


def _control(random: Random) -> bytes:
    if random.random() < 0.4:
        content = random.randbytes(random.choice((0, 5, 125)))
        return frame(random, FIN | random.choice((PING, PONG)), content)
    if random.random() < 0.3:
        return frame(random, FIN | CLOSE, random.choice((b"", b"\x03", b"a" * 126)))
    reason = random.choice((b"", b"bye", b"\xff", b"a" * 123, "\u20ac".encode()[:2]))
    return frame(random, FIN | CLOSE, struct.pack(">H", random.choice(CODES)) + reason)


def _broken(random: Random, payload: bytes) -> bytes:
    sizes = (126, 65_537, 300_000, 2**31, 2**63, 2**64 - 1)
    first = random.choice((FIN | CONTINUATION, PING, CLOSE, BINARY))
    reserved = FIN | TEXT | random.choice((RSV1, 0x20, 0x10, 0x70))
    unknown = random.choice((FIN, 0)) | random.choice((3, 7, 11, 15))
    return random.choice(
        (
            frame(random, FIN | TEXT, random.choice((b"\xff", b"\xed\xa0\x80", b"a\xc3", b"\0"))),
            frame(random, reserved, payload),
            frame(random, unknown, payload),
            frame(random, FIN | TEXT, payload, length=random.choice(sizes)),
            frame(random, random.choice((FIN | TEXT, FIN | PING)), payload[:100], masked=False),
            frame(random, first, payload[:100]),
        )
    )


def _fragments(random: Random, payload: bytes) -> bytes:
    """Write a text message in fragments, often cut inside a character, with pings between them."""
    size = random.choice((1, 3, 20))
    parts: Sequence[bytes] = [payload[at : at + size] for at in range(0, len(payload), size)] or [
        b""
    ]
    frames = []
    for number, part in enumerate(parts):
        first = CONTINUATION if number else TEXT
        is_last = number == len(parts) - 1 and random.random() < 0.9
        frames.append(frame(random, (FIN if is_last else 0) | first, part))
        if random.random() < 0.1:
            frames.append(frame(random, FIN | PING, b"p"))
    return b"".join(frames)


def _deflated(content: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-12)
    return (deflate.compress(content) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
