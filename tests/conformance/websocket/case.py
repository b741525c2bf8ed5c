"""One case of the WebSocket table: frames, and the events that must come back."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Final

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
RSV1, RSV2, RSV3 = 0x40, 0x20, 0x10
READY: Final = "text:ready"
ERROR: Final = "text:error"
_MASK: Final = b"\x1b\x2c\x3d\x4e"


@dataclass(frozen=True)
class Case:
    """What is sent after the handshake (bytes) and the events that come back, in their order.

    An event is ``text:TYPE``, ``pong:HEX`` or ``close:CODE`` (without a code where the frame has none);
    several allowed ones are separated by ``|``. ``extensions`` is offered in the handshake and
    ``agreed`` is what the answer must say of it; None: anything.
    """

    name: str
    section: str
    steps: tuple[bytes | str, ...]
    extensions: str = ""
    agreed: str | None = None


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    bits: int = 0,
    masked: bool = True,
    form: int | None = None,
) -> bytes:
    """Write a frame; ``form`` is the number of bytes of a longer form of the length than needed."""
    length = len(payload)
    needed = 0 if length < 126 else 2 if length < 65536 else 8
    size = needed if form is None else form
    second = length if size == 0 else 126 if size == 2 else 127
    head = bytes(((0x80 if fin else 0) | bits | opcode, second | (0x80 if masked else 0)))
    head += b"" if size == 0 else struct.pack("!H" if size == 2 else "!Q", length)
    return head + _MASK + mask(payload) if masked else head + payload


def mask(payload: bytes) -> bytes:
    """Apply the mask of these frames."""
    repeated = (_MASK * (len(payload) // 4 + 1))[: len(payload)]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(
        len(payload), "big"
    )


def start(**more: object) -> bytes:
    """Write the message that opens a session; unknown fields are ignored by the contract."""
    return json.dumps({"type": "start", "voice": "ash", **more}, ensure_ascii=False).encode()


def close(code: int | None = 1000, reason: bytes = b"") -> bytes:
    """Write a close frame."""
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


GOOD: Final = frame(TEXT, start())
BYE: Final = close()


def taken(name: str, section: str, *writes: bytes, events: tuple[str, ...] = (READY,)) -> Case:
    """Make a case whose frames are accepted, which a close then ends."""
    return Case(name, section, (*writes, *events, BYE, "close:1000"))


def failed(
    name: str, section: str, *writes: bytes, code: str = "1002", error: bool = False
) -> Case:
    """Make a case whose connection fails with ``code``, after an error message with ``error``."""
    allowed = "|".join(f"close:{each}" for each in code.split("|"))
    return Case(name, section, (*writes, ERROR, allowed) if error else (*writes, allowed))


def late(name: str, section: str, *writes: bytes, code: str = "1002") -> Case:
    """Make a case whose connection fails after the session has begun."""
    return Case(name, section, (GOOD, READY, *writes, f"close:{code}"))


def octets(*frames: bytes) -> tuple[bytes, ...]:
    """Cut frames into writes of one byte."""
    return tuple(bytes((octet,)) for each in frames for octet in each)


def single_octets(message: bytes, bits: int = 0) -> bytes:
    """Write a text message as a fragment for each byte, which an empty one ends."""
    pieces = [frame(CONTINUATION, bytes((octet,)), fin=False) for octet in message[1:]]
    first = frame(TEXT, message[:1], fin=False, bits=bits)
    return first + b"".join(pieces) + frame(CONTINUATION)
