"""Header fields: syntax, Host, folding and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.http.case import HOST, KEY, Case, get, refused, request, served

_FIELD = "RFC 9112, 5.1"
_VALUE = "RFC 9110, 5.5"
_TOKEN = "RFC 9110, 5.6.2"
_HOST = "RFC 9112, 3.2"
_FOLD = "RFC 9112, 5.2"
_ENDS = "RFC 9112, 2.2"
_LINE = "GET /v1/models HTTP/1.1"


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _names()
    yield from _values()
    yield from _hosts()
    yield from _line_ends()
    yield from _sizes()


def _names() -> Iterator[Case]:
    yield served("names in any case", "RFC 9110, 5.1", get().replace("Host", "hOsT"))
    yield served("every sign of a token", _TOKEN, get("!#$%&'*+-.^_`|~0aZ: 1"))
    for sign in '"(),/;<=>?@[\\]{}':
        yield refused(f"a name with {sign}", _TOKEN, get(f"X{sign}Y: 1"))
    for sign in ("\x00", "\x01", "\x0b", "\x7f", "\xe9"):
        yield refused(f"a name with {sign!r}", _TOKEN, get(f"X{sign}Y: 1"))
    yield refused("space before the colon", _FIELD, get("X-One : 1"))
    yield refused("a tab before the colon", _FIELD, get("X-One\t: 1"))
    yield refused("a space in a name", _TOKEN, get("X One: 1"))
    yield refused("no name", _FIELD, get(": 1"))
    yield refused("no colon", _FIELD, get("X-One 1"))
    yield refused("a name alone", _FIELD, get("X-One"))
    yield refused("space before the colon of a length", _FIELD, get("Content-Length : 5"))
    yield refused("space before the colon of a coding", _FIELD, get("Transfer-Encoding : chunked"))


def _values() -> Iterator[Case]:
    yield served("an empty value", _VALUE, get("X-One:"))
    yield served("a value of spaces", _VALUE, get("X-One:   \t "))
    yield served("no space before a value", _VALUE, get("X-One:1"))
    yield served("space around a value", _VALUE, get("X-One: \t 1 \t "))
    yield served("a tab in a value", _VALUE, get("X-One: a\tb"))
    yield served("a value of Latin-1", _VALUE, get("X-One: \xe9\xff"))
    yield served("a field twice", "RFC 9110, 5.2", get("X-One: 1", "X-One: 2"))
    yield served("colons and quotes in a value", _VALUE, get('X-One: a:b:"c"'))
    for sign in ("\x00", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x1f", "\x7f"):
        yield refused(f"a value with {sign!r}", _VALUE, get(f"X-One: a{sign}b"))
    yield Case("two keys", "RFC 9110, 5.3", get("Authorization: Bearer {key}"), ("200|400|401",))


def _hosts() -> Iterator[Case]:
    def with_host(*lines: str, target: str = "/v1/models") -> str:
        return request(f"GET {target} HTTP/1.1", *lines, KEY)

    yield served("a port in Host", _HOST, with_host("Host: 127.0.0.1:80"))
    yield served("a name in Host", _HOST, with_host("Host: localhost"))
    yield served("Host in upper case", "RFC 9110, 4.2.3", with_host("Host: LOCALHOST"))
    yield served("Host last", _HOST, request(_LINE, KEY, "X-One: 1", HOST))
    yield refused("no Host", _HOST, with_host())
    yield refused("two Hosts", _HOST, with_host(HOST, "Host: evil.example"))
    yield refused("two Hosts alike", _HOST, with_host(HOST, HOST))
    for name, value in {
        "two Hosts in a list": "127.0.0.1, 127.0.0.1",
        "an empty Host": "",
        "a Host with a path": "127.0.0.1/v1",
        "a Host with a user": "a@127.0.0.1",
        "a Host with a space": "127.0.0.1 x",
        "a Host with a scheme": "http://127.0.0.1",
        "a Host with a query": "127.0.0.1?a",
        "a Host that is not served": "evil.example",
        "a port that is none": "127.0.0.1:port",
        "a port beyond 65535 with letters": "127.0.0.1:99999x",
        "an IPv6 address without its end": "[::1",
    }.items():
        yield Case(name, _HOST, with_host(f"Host: {value}"), ("400",))
    absolute = with_host(target="http://127.0.0.1/v1/models")
    yield refused("no Host beside an absolute target", "RFC 9112, 3.2.2", absolute)


def _line_ends() -> Iterator[Case]:
    yield refused("a folded field", _FOLD, get("X-One: 1\r\n two"))
    yield refused("a field folded by a tab", _FOLD, get("X-One: 1\r\n\ttwo"))
    yield refused("a folded empty field", _FOLD, get("X-One:\r\n two"))
    yield refused("a folded Host", _FOLD, request(_LINE, "Host:\r\n 127.0.0.1", KEY))
    yield refused("a fold of spaces alone", _FOLD, get("X-One: 1\r\n "))
    yield refused("a folded length", _FOLD, get("Content-Length:\r\n 5"))
    yield refused("lines that end in LF", _ENDS, get("X-One: 1").replace("\r\n", "\n"))
    yield refused("one line that ends in LF", _ENDS, get("X-One: 1\nX-Two: 2"))
    yield refused("one line that ends in CR", _ENDS, get("X-One: 1\rX-Two: 2"))
    yield refused("one line that ends in CR CR LF", _ENDS, get("X-One: 1\r", "X-Two: 2"))
    yield refused("a head that ends in LF LF", _ENDS, get("X-One: 1")[:-4] + "\n\n")
    yield refused("a head that ends in CR LF LF", _ENDS, get("X-One: 1")[:-2] + "\n")
    yield refused("NUL behind a line", _ENDS, get("X-One: 1\x00"))


def _sizes() -> Iterator[Case]:
    section = "RFC 6585, 5"
    yield served("a value of 8 000 bytes", section, get(f"X-One: {'a' * 8000}"))
    yield served("60 fields", section, get(*(f"X-{number}: 1" for number in range(60))))
    yield refused("a value of 100 000 bytes", section, get(f"X-One: {'a' * 100_000}"), "431")
    yield refused("a name of 100 000 bytes", section, get(f"{'a' * 100_000}: 1"), "431")
    many = get(*(f"X-{number}: 1" for number in range(3000)))
    yield refused("3 000 fields", section, many, "431")
    kinds = ("Range: bytes=0-1", "If-Match: *", "TE: trailers", "Via: 1.1 a", "From: a@b.example")
    yield served("an unknown field of every kind", "RFC 9110, 5.1", get(*kinds))
