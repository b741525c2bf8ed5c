"""Frames and messages: pings, reserved bits and opcodes, fragments, sizes and masks."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.conformance.websocket.case import (
    BINARY,
    BYE,
    CLOSE,
    CONTINUATION,
    ERROR,
    GOOD,
    PING,
    PONG,
    READY,
    RSV1,
    RSV2,
    RSV3,
    TEXT,
    Case,
    failed,
    frame,
    late,
    octets,
    single_octets,
    start,
    taken,
)

_DATA = "RFC 6455, 5.6"
_LARGE = "RFC 6455, 7.4.1"
_CONTROL = "RFC 6455, 5.5"
_PONGS = "RFC 6455, 5.5.3"
_PINGS = "RFC 6455, 5.5.2"
_BITS = "RFC 6455, 5.2"
_PARTS = "RFC 6455, 5.4"
_START = start()
_FIRST, _SECOND = _START[:10], _START[10:]


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _messages()
    yield from _pings()
    yield from _bits()
    yield from _opcodes()
    yield from _fragments()


def _messages() -> Iterator[Case]:
    yield taken("a text message", _DATA, GOOD)
    yield taken("a text message byte by byte", _DATA, *octets(GOOD))
    for size in (125, 126, 127, 128, 1000, 32000):
        yield taken(f"a message of {size} bytes", _BITS, _of_size(size))
    large = (_of_size(65537), ERROR, "close:1009")
    yield Case("a message of 65 537 bytes", _LARGE, large)
    yield failed("a message of 1 000 000 bytes", _LARGE, frame(TEXT, b"x" * 1_000_000), code="1009")
    for name, sent in {
        "an empty text message": frame(TEXT),
        "an empty binary message": frame(BINARY),
        "a binary message": frame(BINARY, _START),
    }.items():
        yield failed(name, _DATA, sent, code="4400", error=True)
    yield failed("a frame without a mask", "RFC 6455, 5.1", frame(TEXT, _START, masked=False))
    yield failed("a ping without a mask", "RFC 6455, 5.1", frame(PING, masked=False))
    # The shortest form is a rule for senders (RFC 6455, 5.2); a receiver may take another.
    for form in (2, 8):
        longer = (frame(TEXT, _START, form=form), f"{READY}|close:1002", BYE, "close:1000")
        yield Case(f"a length of {form} bytes that fits in less", _BITS, longer)
    highest, four_gib = (b"\x81\xff" + struct.pack("!Q", 1 << bit) + bytes(4) for bit in (63, 32))
    yield failed("a length with its highest bit", _BITS, highest, code="1002|1009")
    yield failed("a length of 4 GiB", _LARGE, four_gib, code="1009")


def _of_size(size: int) -> bytes:
    return frame(TEXT, start(note="x" * (size - len(start(note="")))))


def _pings() -> Iterator[Case]:
    for name, payload in {
        "without a payload": b"",
        "with a payload": b"hello",
        "with bytes that are no text": b"\x00\xff\xfe\xfd",
        "of 125 bytes": b"\xfe" * 125,
    }.items():
        pong = f"pong:{payload.hex()}"
        yield taken(f"a ping {name}", _PINGS, frame(PING, payload), events=(pong,))
    yield failed("a ping of 126 bytes", _CONTROL, frame(PING, b"x" * 126))
    yield failed("a pong of 126 bytes", _CONTROL, frame(PONG, b"x" * 126))
    yield taken("a pong that nobody asked for", _PONGS, frame(PONG), GOOD)
    yield taken("a pong with a payload", _PONGS, frame(PONG, b"hi"), GOOD)
    both = (frame(PONG, b"a"), frame(PING, b"b"))
    yield taken("a pong and a ping", _PONGS, *both, events=("pong:62",))
    ten = [frame(PING, bytes((number,))) for number in range(10)]
    pongs = tuple(f"pong:{number:02x}" for number in range(10))
    yield taken("ten pings at once", _PINGS, b"".join(ten), events=pongs)
    yield taken("ten pings byte by byte", _PINGS, *octets(*ten), events=pongs)
    yield taken("a ping before a message", _PINGS, frame(PING), GOOD, events=("pong:", READY))


def _bits() -> Iterator[Case]:
    names = {RSV1: "RSV1", RSV2: "RSV2", RSV3: "RSV3"}
    for bits in (RSV1, RSV2, RSV3, RSV1 | RSV2, RSV2 | RSV3, RSV1 | RSV3, RSV1 | RSV2 | RSV3):
        name = " and ".join(each for bit, each in names.items() if bits & bit)
        yield failed(f"{name} on a text", _BITS, frame(TEXT, _START, bits=bits))
    for bit, name in names.items():
        yield failed(f"{name} on a ping", _BITS, frame(PING, b"hi", bits=bit))
        yield failed(f"{name} on a close", _BITS, frame(CLOSE, b"\x03\xe8", bits=bit))
        yield late(f"{name} after a message", _BITS, frame(TEXT, b"{}", bits=bit))
    yield failed("RSV1 on a binary message", _BITS, frame(BINARY, b"x", bits=RSV1))


def _opcodes() -> Iterator[Case]:
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        yield failed(f"opcode {opcode}", _BITS, frame(opcode))
        yield late(f"opcode {opcode} with a payload, later", _BITS, frame(opcode, b"hello"))


def _fragments() -> Iterator[Case]:
    first, last = frame(TEXT, _FIRST, fin=False), frame(CONTINUATION, _SECOND)
    yield failed("a ping in two fragments", _CONTROL, frame(PING, b"a", fin=False))
    yield failed("a pong in two fragments", _CONTROL, frame(PONG, b"a", fin=False))
    yield failed("a close in two fragments", _CONTROL, frame(CLOSE, b"\x03\xe8", fin=False))
    yield taken("two fragments", _PARTS, first, last)
    yield taken("two fragments in one write", _PARTS, first + last)
    yield taken("two fragments byte by byte", _PARTS, *octets(first, last))
    yield taken("a fragment for each byte", _PARTS, single_octets(_START))
    empty = frame(CONTINUATION, fin=False)
    yield taken("empty fragments between", _PARTS, first + empty + empty + last)
    nothing, whole = frame(TEXT, fin=False), frame(CONTINUATION, _START)
    yield taken("an empty first fragment", _PARTS, nothing, whole)
    pinged = (first, frame(PING, b"a"), last)
    yield taken("a ping between fragments", _PARTS, *pinged, events=("pong:61", READY))
    yield taken("a pong between fragments", _PARTS, first, frame(PONG, b"a"), last)
    yield failed("a continuation of nothing", _PARTS, last)
    more = frame(CONTINUATION, b"a", fin=False)
    yield failed("a continuation of nothing that goes on", _PARTS, more)
    yield late("a continuation after a message", _PARTS, last)
    yield failed("a text between fragments", _PARTS, first, GOOD)
    yield failed("a text that goes on between fragments", _PARTS, first, first)
    yield failed("a binary message between fragments", _PARTS, first, frame(BINARY, b"x"))
    yield failed("RSV1 on a continuation", _PARTS, first, frame(CONTINUATION, _SECOND, bits=RSV1))
    # It ends a message that never became one; both answers say so.
    yield Case("a close between fragments", "RFC 6455, 5.4", (first, BYE, "close:1000|close:1002"))
    flood = first + empty * 100_000
    yield failed("100 000 empty fragments", "RFC 6455, 10.4", flood, code="1008|1009")
