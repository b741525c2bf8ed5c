"""permessage-deflate: its negotiation, compressed messages, and what is no message at all."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from tests.conformance.websocket.case import (
    BYE,
    CONTINUATION,
    GOOD,
    PING,
    READY,
    RSV1,
    RSV2,
    TEXT,
    Case,
    frame,
    single_octets,
    start,
)

_OFFER: Final = "permessage-deflate"
_MESSAGES: Final = "RFC 7692, 6"
_NEGOTIATION: Final = "RFC 7692, 7.1"
_END: Final = b"\x00\x00\xff\xff"


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _offers()
    yield from _messages()
    yield from _faults()


def deflated(payload: bytes, *, window: int = 15, level: int = 6) -> bytes:
    """Compress a message as the extension does, without the end that all have."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -window)
    packed = packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH)
    return packed.removesuffix(_END)


def _offers() -> Iterator[Case]:
    for offer in (
        _OFFER,
        f"{_OFFER}; client_max_window_bits",
        f"{_OFFER}; client_no_context_takeover",
        f"{_OFFER}; server_no_context_takeover",
        f"{_OFFER}; server_max_window_bits=10",
        f"{_OFFER}; client_max_window_bits=9, {_OFFER}",
        f"foo, {_OFFER}",
    ):
        message = frame(TEXT, deflated(start(), window=9), bits=RSV1)
        yield Case(f"offer {offer}", _NEGOTIATION, (message, READY, BYE, "close:1000"), offer)
    for offer in (
        "foo",
        f"{_OFFER}; foo",
        f"{_OFFER}; server_max_window_bits=7",
        f"{_OFFER}; server_max_window_bits=16",
        f"{_OFFER}; server_max_window_bits",
        f"{_OFFER}; client_no_context_takeover=1",
        f"{_OFFER}; server_no_context_takeover; server_no_context_takeover",
    ):
        # Declined: the session goes on without it.
        yield Case(f"offer {offer}", _NEGOTIATION, (GOOD, READY, BYE, "close:1000"), offer, "")


def _case(name: str, *writes: bytes, events: tuple[str, ...] = (READY,)) -> Case:
    return Case(name, _MESSAGES, (*writes, *events, BYE, "close:1000"), _OFFER)


def _messages() -> Iterator[Case]:
    packed = deflated(start())
    half = len(packed) // 2
    yield _case("compressed", frame(TEXT, packed, bits=RSV1))
    yield _case("not compressed", GOOD)
    yield _case("stored without compression", frame(TEXT, deflated(start(), level=0), bits=RSV1))
    yield _case("compressed best", frame(TEXT, deflated(start(), level=9), bits=RSV1))
    halves = (frame(TEXT, packed[:half], fin=False, bits=RSV1), frame(CONTINUATION, packed[half:]))
    yield _case("compressed in two fragments", *halves)
    yield _case("compressed, a fragment for each byte", single_octets(packed, RSV1))
    pinged = (halves[0], frame(PING, b"a"), halves[1])
    yield _case("a ping between compressed fragments", *pinged, events=("pong:61", READY))
    final = zlib.compressobj(6, zlib.DEFLATED, -15)
    whole = final.compress(start()) + final.flush(zlib.Z_FINISH) + b"\x00"
    yield _case("a last block that says so", frame(TEXT, whole, bits=RSV1))
    long = start(note="x" * 60_000)
    yield _case("60 000 bytes compressed", frame(TEXT, deflated(long), bits=RSV1))


def _faults() -> Iterator[Case]:
    def fault(name: str, *writes: bytes, codes: str = "close:1002") -> Case:
        return Case(name, _MESSAGES, (*writes, codes), _OFFER)

    packed = deflated(start())
    yield fault("a compressed ping", frame(PING, b"a", bits=RSV1))
    yield fault("RSV2 beside compression", frame(TEXT, packed, bits=RSV1 | RSV2))
    again = frame(CONTINUATION, packed[5:], bits=RSV1)
    first = frame(TEXT, packed[:5], fin=False, bits=RSV1)
    yield fault("RSV1 on a compressed continuation", first, again)
    for name, content, codes in (
        ("bytes that do not inflate", b"\xff\xff\xff\xff", "close:1002|close:1007"),
        ("compressed text that is no UTF-8", deflated(b"\xff\xfe"), "close:1007"),
        ("50 000 000 zeros compressed", deflated(b"0" * 50_000_000, level=9), "close:1009"),
    ):
        yield fault(name, frame(TEXT, content, bits=RSV1), codes=codes)
    bomb = deflated(b"0" * 5_000_000, level=9)
    yield fault(
        "a bomb in fragments",
        frame(TEXT, bomb[:100], fin=False, bits=RSV1),
        *(frame(CONTINUATION, bomb[at : at + 100], fin=False) for at in range(100, len(bomb), 100)),
        frame(CONTINUATION),
        codes="close:1009",
    )
