"""UTF-8 and the closing handshake."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.conformance.websocket.case import (
    BYE,
    CLOSE,
    CONTINUATION,
    GOOD,
    PING,
    READY,
    TEXT,
    Case,
    close,
    failed,
    frame,
    late,
    single_octets,
    start,
    taken,
)

_UTF8 = "RFC 6455, 8.1"
_CLOSES = "RFC 6455, 5.5.1"
_CODES = "RFC 6455, 7.4"
VALID = {
    "Greek": "κόσμε",
    "Devanagari": "नमस्ते",
    "an emoji": "\U0001f600",
    "the first of each length": "\x7f\x80\u0800\U00010000",
    "the last of each length": "\x7f\u07ff\uffff\U0010ffff",
    "around the surrogates": "\ud7ff\ue000",
    "non-characters": "\ufffe\uffff\U0001fffe",
    "the replacement character": "\ufffd",
}
INVALID = {
    "a lone continuation": b"\x80",
    "the last continuation alone": b"\xbf",
    "two bytes cut": b"\xc3",
    "three bytes cut": b"\xe2\x82",
    "four bytes cut": b"\xf0\x9f\x98",
    "a first byte before ASCII": b"\xc3a",
    "an overlong slash of two": b"\xc0\xaf",
    "an overlong slash of three": b"\xe0\x80\xaf",
    "an overlong slash of four": b"\xf0\x80\x80\xaf",
    "an overlong NUL": b"\xc0\x80",
    "the largest overlong of two": b"\xc1\xbf",
    "the largest overlong of three": b"\xe0\x9f\xbf",
    "the largest overlong of four": b"\xf0\x8f\xbf\xbf",
    "a high surrogate": b"\xed\xa0\x80",
    "a low surrogate": b"\xed\xbf\xbf",
    "a pair of surrogates": b"\xed\xa0\x80\xed\xb0\x80",
    "beyond U+10FFFF": b"\xf4\x90\x80\x80",
    "five bytes": b"\xf8\x88\x80\x80\x80",
    "six bytes": b"\xfc\x84\x80\x80\x80\x80",
    "FE": b"\xfe",
    "FF": b"\xff",
}


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _utf8()
    yield from _closes()


def _utf8() -> Iterator[Case]:
    for name, text in VALID.items():
        message = start(note=text)
        yield taken(f"{name}", _UTF8, frame(TEXT, message))
        yield taken(f"{name}, a fragment for each byte", _UTF8, single_octets(message))
    for name, octets in INVALID.items():
        message = start(note="@").replace(b"@", octets)
        yield failed(f"invalid: {name}", _UTF8, frame(TEXT, message), code="1007")
    broken = start(note="@").replace(b"@", b"\xed\xa0\x80")
    at = broken.index(b"\xed") + 1
    across = (frame(TEXT, broken[:at], fin=False), frame(CONTINUATION, broken[at:]))
    yield failed("invalid across fragments", _UTF8, *across, code="1007")
    cut = (frame(TEXT, start(note="é")[:-3], fin=False), frame(CONTINUATION))
    yield failed("cut by the end of the message", _UTF8, *cut, code="1007")
    yield late("invalid after a message", _UTF8, frame(TEXT, b"\xff"), code="1007")


def _closes() -> Iterator[Case]:
    yield Case("a close", _CLOSES, (BYE, "close:1000"))
    yield Case("a close after a message", _CLOSES, (GOOD, READY, BYE, "close:1000"))
    yield Case("a close without a code", _CLOSES, (close(None), "close:|close:1000"))
    yield failed("a close of one byte", _CLOSES, frame(CLOSE, b"\x03"))
    yield Case("a close with a reason", _CLOSES, (close(1000, b"bye"), "close:1000"))
    yield Case("a reason of 123 bytes", _CLOSES, (close(1000, b"x" * 123), "close:1000"))
    yield failed("a reason of 124 bytes", "RFC 6455, 5.5", close(1000, b"x" * 124))
    yield failed("a reason that is no UTF-8", _UTF8, close(1000, b"\xff"), code="1002|1007")
    yield Case("two closes", _CLOSES, (BYE + BYE, "close:1000"))
    yield Case("a message behind a close", _CLOSES, (BYE + GOOD, "close:1000"))
    yield Case("a ping behind a close", _CLOSES, (BYE + frame(PING), "close:1000"))
    codes = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014)
    for code in (*codes, 3000, 3999, 4000, 4999):
        yield Case(f"code {code}", _CODES, (close(code), f"close:{code}"))
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535):
        yield failed(f"code {code}", _CODES, frame(CLOSE, struct.pack("!H", code)))
