"""The framing of bodies: lengths, chunks, extensions and trailers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.conformance.http.case import (
    CHAT,
    Case,
    On,
    chat,
    chunked,
    chunks,
    get,
    only,
    post,
    refused,
    served,
)

_LENGTH = "RFC 9112, 6.2"
_BOTH = "RFC 9112, 6.1"
_CHUNK = "RFC 9112, 7.1"
_EXTENSION = "RFC 9112, 7.1.1"
_TRAILER = "RFC 9112, 7.1.2"
_GET = "RFC 9110, 9.3.1"
_HALF = len(CHAT) // 2
_SIZE = f"{len(CHAT):x}"
_ANY = ("200|400|404",)


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _lengths()
    yield from _codings()
    yield from only(On.INFERENCE, _whole())
    for case in (*only(On.INFERENCE, _whole_chunks()), *_broken_chunks(), *_trailers()):
        # The speech address has no such path, and says so where the head comes alone.
        yield replace(case, early="404")


def _lengths() -> Iterator[Case]:
    size = len(CHAT)
    yield served("a GET of length 0", _LENGTH, get("Content-Length: 0"))
    yield served("a GET with a body", _GET, get("Content-Length: 5", end="hello"))
    yield Case("a POST of length 0", _LENGTH, post("Content-Length: 0", body=""), ("400|404",))
    yield Case("a POST without framing", "RFC 9112, 6.3", post(body=""), ("400|404|411",))
    for name, value in {
        "a plus": f"+{size}",
        "a minus": "-5",
        "minus nothing": "-0",
        "a fraction": f"{size}.0",
        "an exponent": "1e2",
        "hexadecimal": f"0x{size:x}",
        "an underscore": "1_0",
        "letters": f"{size}abc",
        "nothing": "",
        "a space within": "1 0",
        "a list of different ones": f"{size}, {size + 1}",
        "a list with nothing": f"{size},",
        "beyond 64 bits": "18446744073709551617",
        "beyond counting": "9" * 40,
        "quotes": f'"{size}"',
        "other digits": "\xb2\xb3",
    }.items():
        yield refused(f"a length with {name}", _LENGTH, post(f"Content-Length: {value}", body=CHAT))
    length = f"Content-Length: {size}"
    yield refused("two lengths", _LENGTH, post(length, "Content-Length: 5", body=CHAT))
    # The same value twice may be refused or taken as one.
    yield Case("two lengths alike", _LENGTH, post(length, length, body=CHAT), _ANY)
    listed = post(f"{length}, {size}", body=CHAT)
    yield Case("a list of the same lengths", _LENGTH, listed, _ANY)


def _codings() -> Iterator[Case]:
    def coded(*lines: str) -> str:
        return post(*lines, body=chunks(CHAT))

    coding = "Transfer-Encoding: chunked"
    yield refused("a length and chunked", _BOTH, coded(coding, f"Content-Length: {len(CHAT)}"))
    yield refused("chunked and a length of 0", _BOTH, coded("Content-Length: 0", coding))
    for value in (
        *("identity", "gzip", "xchunked", "chunkedx", "chunked, identity", "gzip, chunked"),
        *("chunked, gzip", "chunked, chunked", "chunked;a=b", '"chunked"', "", "chunked\x0b"),
        *("\x0cchunked", "chunk ed", "cow, chunked"),
    ):
        sent = coded(f"Transfer-Encoding: {value}")
        yield refused(f"the coding {value!r}", _BOTH, sent, "400|501")
    yield refused("chunked twice", _BOTH, coded(coding, coding), "400|501")
    two = coded(coding, "Transfer-Encoding: identity")
    yield refused("two codings in two fields", _BOTH, two, "400|501")
    some = ("200|400|404|501",)
    empty = coded("Transfer-Encoding: , chunked")
    yield Case("an empty list of codings", "RFC 9110, 5.6.1", empty, some)
    yield served("chunked on a GET", _GET, get("Transfer-Encoding: chunked", end=chunks("hi")))


def _whole() -> Iterator[Case]:
    yield served("a length", _LENGTH, chat())
    zeros = post(f"Content-Length: 000{len(CHAT)}", body=CHAT)
    yield served("zeros before a length", _LENGTH, zeros)
    large = post("Content-Length: 999999999", body="")
    yield Case("a body above the limit", "RFC 9110, 15.5.14", large, ("413",))
    yield served("chunked", _CHUNK, chunked(chunks(CHAT)))
    capitals = post("Transfer-Encoding: CHUNKED", body=chunks(CHAT))
    yield served("chunked in capitals", "RFC 9112, 7", capitals)


def _one(size: str, after: str = "\r\n", *, last: str = "0\r\n\r\n", ends: str = "\r\n") -> str:
    """A chat request in one chunk: its size, the end of that line, and what follows the chunk."""
    return chunked(f"{size}{after}{CHAT}{ends}{last}")


def _whole_chunks() -> Iterator[Case]:
    yield served("two chunks", _CHUNK, chunked(chunks(CHAT[:_HALF], CHAT[_HALF:])))
    yield served("a chunk for each byte", _CHUNK, chunked(chunks(*CHAT)))
    yield served("a size in capitals", _CHUNK, _one(_SIZE.upper()))
    yield served("zeros before a size", _CHUNK, _one(f"000{_SIZE}"))
    yield served("many zeros at the end", _CHUNK, _one(_SIZE, last="0000\r\n\r\n"))
    yield served("an extension", _EXTENSION, _one(f"{_SIZE};a=b"))
    yield served("an extension without a value", _EXTENSION, _one(f"{_SIZE};a"))
    yield served("an extension in quotes", _EXTENSION, _one(f'{_SIZE};a="b c;d"'))
    of_the_last = _one(_SIZE, last="0;a=b\r\n\r\n")
    yield served("an extension of the last chunk", _EXTENSION, of_the_last)


def _broken_chunks() -> Iterator[Case]:
    for name, size in {
        "0x": f"0x{_SIZE}",
        "a minus": f"-{_SIZE}",
        "a plus": f"+{_SIZE}",
        "a letter that is no digit": f"{_SIZE}g",
        "a space first": f" {_SIZE}",
        "an underscore": f"{_SIZE[0]}_{_SIZE[1:]}",
        "nothing": "",
        "beyond 64 bits": "10000000000000000f",
        "beyond counting": "f" * 40,
        "a point": f"{_SIZE}.0",
        "a comma": f"{_SIZE},{_SIZE}",
        "NUL": f"{_SIZE}\x00",
        "quotes": f'"{_SIZE}"',
    }.items():
        yield refused(f"a chunk size with {name}", _CHUNK, _one(size))
    yield refused("a chunk without CR LF", _CHUNK, _one(_SIZE, ends=""))
    yield refused("a chunk that ends in LF", _CHUNK, _one(_SIZE, ends="\n"))
    yield refused("a size that ends in LF", _CHUNK, _one(_SIZE, "\n"))
    yield refused("a size that ends in CR", _CHUNK, _one(_SIZE, "\r"))
    yield refused("a chunk longer than it says", _CHUNK, _one("3"))
    yield refused("a last chunk that ends in LF", _CHUNK, _one(_SIZE, last="0\n\n"))
    yield refused("an extension that ends in LF", _EXTENSION, _one(f"{_SIZE};a", "\n"))
    yield refused("an extension with NUL", _EXTENSION, _one(f"{_SIZE};a=\x00"))
    yield refused("an extension with CR", _EXTENSION, _one(f"{_SIZE};a=b\rc"))


def _trailers() -> Iterator[Case]:
    def trailing(*lines: str) -> str:
        return chunked(chunks(CHAT, last="".join(f"{each}\r\n" for each in ("0", *lines, ""))))

    yield served("a trailer", _TRAILER, trailing("X-One: 1"), on=On.INFERENCE)
    yield served("two trailers", _TRAILER, trailing("X-One: 1", "X-Two: 2"), on=On.INFERENCE)
    for line in ("Content-Length: 5", "Transfer-Encoding: chunked", "Host: evil.example"):
        # Not merged into the head: ignored or refused (RFC 9110, 6.5.1).
        name = f"a trailer {line.partition(':')[0]}"
        yield Case(name, "RFC 9110, 6.5.1", trailing(line), ("200|400",), on=On.INFERENCE)
    yield refused("a trailer without a colon", _TRAILER, trailing("X-One"))
    yield refused("a folded trailer", "RFC 9112, 5.2", trailing("X-One: 1\r\n two"))
    yield refused("a trailer that ends in LF", _TRAILER, trailing("X-One: 1\nX-Two: 2"))
    yield refused("a trailer with NUL", _TRAILER, trailing("X-One: \x00"))
    yield refused("space before a trailer's colon", _TRAILER, trailing("X-One : 1"))
    many = trailing(*(f"X-{each}: 1" for each in range(3000)))
    yield refused("3 000 trailers", "RFC 6585, 5", many, "431")
