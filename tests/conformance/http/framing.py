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
    post,
    refused,
    served,
)

_LENGTH = "RFC 9112, 6.2"
_BOTH = "RFC 9112, 6.1"
_CHUNK = "RFC 9112, 7.1"
_EXTENSION = "RFC 9112, 7.1.1"
_TRAILER = "RFC 9112, 7.1.2"
_HALF = len(CHAT) // 2
_SIZE = f"{len(CHAT):x}"


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _lengths()
    yield from _codings()
    for case in (*_chunks(), *_trailers()):
        # The speech address has no such path, and says so where the head comes alone.
        yield replace(case, early="404")


def _inference(name: str, section: str, sent: str, **more: object) -> Case:
    return served(name, section, sent, on=On.INFERENCE, **more)


def _lengths() -> Iterator[Case]:
    size = len(CHAT)
    yield _inference("a length", _LENGTH, chat())
    yield _inference(
        "zeros before a length", _LENGTH, post(f"Content-Length: 000{size}", body=CHAT)
    )
    yield served("a GET of length 0", _LENGTH, get("Content-Length: 0"))
    yield served("a GET with a body", "RFC 9110, 9.3.1", get("Content-Length: 5", end="hello"))
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
    # The same value twice may be refused or taken as one.
    yield Case(
        "a list of the same lengths",
        _LENGTH,
        post(f"Content-Length: {size}, {size}", body=CHAT),
        ("200|400|404",),
    )
    yield refused(
        "two lengths", _LENGTH, post(f"Content-Length: {size}", "Content-Length: 5", body=CHAT)
    )
    yield Case(
        "two lengths alike",
        _LENGTH,
        post(f"Content-Length: {size}", f"Content-Length: {size}", body=CHAT),
        ("200|400|404",),
    )
    yield Case(
        "a body above the limit",
        "RFC 9110, 15.5.14",
        post("Content-Length: 999999999", body=""),
        ("413",),
        on=On.INFERENCE,
    )


def _codings() -> Iterator[Case]:
    body = chunks(CHAT)
    yield _inference("chunked", _CHUNK, chunked(body))
    yield _inference(
        "chunked in capitals", "RFC 9112, 7", post("Transfer-Encoding: CHUNKED", body=body)
    )
    yield refused(
        "a length and chunked", _BOTH, chunked(body, f"Content-Length: {len(CHAT)}"), "400"
    )
    yield refused(
        "chunked and a length of 0",
        _BOTH,
        post("Content-Length: 0", "Transfer-Encoding: chunked", body=body),
    )
    for value in (
        *("identity", "gzip", "xchunked", "chunkedx", "chunked, identity", "gzip, chunked"),
        *("chunked, gzip", "chunked, chunked", "chunked;a=b", '"chunked"', "", "chunked\x0b"),
        *("\x0cchunked", "chunk ed", "cow, chunked"),
    ):
        yield refused(
            f"the coding {value!r}",
            _BOTH,
            post(f"Transfer-Encoding: {value}", body=body),
            "400|501",
        )
    yield refused(
        "chunked twice", "RFC 9112, 6.1", chunked(body, "Transfer-Encoding: chunked"), "400|501"
    )
    yield refused(
        "two codings in two fields",
        _BOTH,
        post("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=body),
        "400|501",
    )
    yield Case(
        "an empty list of codings",
        "RFC 9110, 5.6.1",
        post("Transfer-Encoding: , chunked", body=body),
        ("200|400|404|501",),
    )
    yield served(
        "chunked on a GET", "RFC 9110, 9.3.1", get("Transfer-Encoding: chunked", end=chunks("hi"))
    )


def _chunks() -> Iterator[Case]:
    yield _inference("two chunks", _CHUNK, chunked(chunks(CHAT[:_HALF], CHAT[_HALF:])))
    yield _inference("a chunk for each byte", _CHUNK, chunked(chunks(*CHAT)))
    yield _inference(
        "a size in capitals", _CHUNK, chunked(f"{_SIZE.upper()}\r\n{CHAT}\r\n0\r\n\r\n")
    )
    yield _inference("zeros before a size", _CHUNK, chunked(f"000{_SIZE}\r\n{CHAT}\r\n0\r\n\r\n"))
    yield _inference("many zeros at the end", _CHUNK, chunked(chunks(CHAT, last="0000\r\n\r\n")))
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
        yield refused(
            f"a chunk size with {name}", _CHUNK, chunked(f"{size}\r\n{CHAT}\r\n0\r\n\r\n")
        )
    yield refused("a chunk without CR LF", _CHUNK, chunked(f"{_SIZE}\r\n{CHAT}0\r\n\r\n"))
    yield refused("a chunk that ends in LF", _CHUNK, chunked(f"{_SIZE}\r\n{CHAT}\n0\r\n\r\n"))
    yield refused("a size that ends in LF", _CHUNK, chunked(f"{_SIZE}\n{CHAT}\r\n0\r\n\r\n"))
    yield refused("a size that ends in CR", _CHUNK, chunked(f"{_SIZE}\r{CHAT}\r\n0\r\n\r\n"))
    yield refused("a chunk longer than it says", _CHUNK, chunked(f"3\r\n{CHAT}\r\n0\r\n\r\n"))
    yield refused("a last chunk that ends in LF", _CHUNK, chunked(f"{_SIZE}\r\n{CHAT}\r\n0\n\n"))
    yield _inference("an extension", _EXTENSION, chunked(f"{_SIZE};a=b\r\n{CHAT}\r\n0\r\n\r\n"))
    yield _inference(
        "an extension without a value", _EXTENSION, chunked(f"{_SIZE};a\r\n{CHAT}\r\n0\r\n\r\n")
    )
    yield _inference(
        "an extension in quotes", _EXTENSION, chunked(f'{_SIZE};a="b c;d"\r\n{CHAT}\r\n0\r\n\r\n')
    )
    yield _inference(
        "an extension of the last chunk", _EXTENSION, chunked(chunks(CHAT, last="0;a=b\r\n\r\n"))
    )
    yield refused(
        "an extension that ends in LF", _EXTENSION, chunked(f"{_SIZE};a\n{CHAT}\r\n0\r\n\r\n")
    )
    yield refused(
        "an extension with NUL", _EXTENSION, chunked(f"{_SIZE};a=\x00\r\n{CHAT}\r\n0\r\n\r\n")
    )
    yield refused(
        "an extension with CR", _EXTENSION, chunked(f"{_SIZE};a=b\rc\r\n{CHAT}\r\n0\r\n\r\n")
    )


def _trailers() -> Iterator[Case]:
    def trailing(*lines: str) -> str:
        return chunked(chunks(CHAT, last="".join(f"{each}\r\n" for each in ("0", *lines, ""))))

    yield _inference("a trailer", _TRAILER, trailing("X-One: 1"))
    yield _inference("two trailers", _TRAILER, trailing("X-One: 1", "X-Two: 2"))
    for line in ("Content-Length: 5", "Transfer-Encoding: chunked", "Host: evil.example"):
        # Not merged into the head: ignored or refused (RFC 9110, 6.5.1).
        name = line.partition(":")[0]
        yield Case(
            f"a trailer {name}", "RFC 9110, 6.5.1", trailing(line), ("200|400",), on=On.INFERENCE
        )
    yield refused("a trailer without a colon", _TRAILER, trailing("X-One"))
    yield refused("a folded trailer", "RFC 9112, 5.2", trailing("X-One: 1\r\n two"))
    yield refused("a trailer that ends in LF", _TRAILER, trailing("X-One: 1\nX-Two: 2"))
    yield refused("a trailer with NUL", _TRAILER, trailing("X-One: \x00"))
    yield refused("space before a trailer's colon", _TRAILER, trailing("X-One : 1"))
    yield refused(
        "3 000 trailers", "RFC 6585, 5", trailing(*(f"X-{each}: 1" for each in range(3000))), "431"
    )
