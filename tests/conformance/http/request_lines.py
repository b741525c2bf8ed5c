"""Request lines: methods, targets, versions and white space."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.http.case import HOST, KEY, Case, get, refused, request, served

_LINE = "RFC 9112, 3"
_METHOD = "RFC 9112, 3.1"
_TARGET = "RFC 9112, 3.2"
_ABSOLUTE = "RFC 9112, 3.2.2"
_ASTERISK = "RFC 9112, 3.2.4"
_ENDS = "RFC 9112, 2.2"
_VERSION = "RFC 9112, 2.3"
_NO_TOKEN = '"(),/:;<=>?@[\\]{}'


def cases() -> Iterator[Case]:
    """Yield the cases."""
    yield from _methods()
    yield from _targets()
    yield from _versions()
    yield from _space()


def _line(line: str, *lines: str) -> str:
    return request(line, HOST, KEY, *lines)


def _by(method: str, *lines: str, target: str = "/v1/models") -> str:
    return _line(f"{method} {target} HTTP/1.1", *lines)


def _methods() -> Iterator[Case]:
    yield served("GET", "RFC 9110, 9.3.1", get())
    yield served("HEAD", "RFC 9110, 9.3.2", _by("HEAD"), no_body=True)
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "BREW", "X"):
        sent = _by(method, "Content-Length: 0")
        # An unknown method may be refused before its target is looked at.
        yield Case(f"method {method}", "RFC 9110, 9.1 and 15.5.6", sent, ("405|501|400",))
    yield Case("a method in lower case", _METHOD, _by("get"), ("400|405|501",))
    long = _by("A" * 500)
    yield Case("a method of 500 letters", "RFC 9110, 15.6.2", long, ("400|405|414|501",))
    for sign in _NO_TOKEN:
        yield refused(f"a method with {sign}", "RFC 9110, 5.6.2", _by(f"G{sign}T"))
    yield refused("a method with a control", _METHOD, _by("G\x01T"))
    yield refused("a method with é", _METHOD, _by("G\xe9T"))
    yield refused("no method", _METHOD, _line("/v1/models HTTP/1.1"))


def _targets() -> Iterator[Case]:
    yield served("an absolute target", _ABSOLUTE, get(target="http://127.0.0.1/v1/models"))
    yield served("a query", "RFC 9112, 3.2.1", get(target="/v1/models?a=b&c=%20"))
    yield served("an empty query", "RFC 9112, 3.2.1", get(target="/v1/models?"))
    yield Case("an asterisk with GET", _ASTERISK, get(target="*"), ("4xx",))
    asterisk = _by("OPTIONS", "Content-Length: 0", target="*")
    yield Case("an asterisk with OPTIONS", _ASTERISK, asterisk, ("2xx|4xx",))
    options = _by("OPTIONS", "Content-Length: 0")
    yield Case("OPTIONS of a path", "RFC 9110, 9.3.7", options, ("2xx|405",))
    yield refused("a target of authority form with GET", _TARGET, get(target="127.0.0.1:80"))
    yield refused("a target without a slash", _TARGET, get(target="v1/models"))
    other = get(target="http://evil.example/v1/models")
    yield refused("an absolute target of another host", _ABSOLUTE, other)
    # The RFC lets a server decide what it has under another scheme.
    ftp = get(target="ftp://127.0.0.1/")
    yield Case("an absolute target of another scheme", _ABSOLUTE, ftp, ("3xx|4xx",))
    user = get(target="http://a@127.0.0.1/v1/models")
    yield refused("user information in a target", "RFC 9110, 4.2.4", user)
    # RFC 9112 has no fragment in a target; a server may ignore one.
    yield Case("a fragment", _TARGET, get(target="/v1/models#part"), ("200|400",))
    for sign in ("\x00", "\x01", "\x0b", "\x7f"):
        yield refused(f"a target with {sign!r}", "RFC 9112, 3", get(target=f"/v1/{sign}models"))
    yield Case("a target with é", _TARGET, get(target="/v1/mod\xe9ls"), ("4xx",))
    for sign in '"<>\\^`{|}':
        yield Case(f"a target with {sign}", _TARGET, get(target=f"/v1/{sign}models"), ("400|404",))
    for target in ("/v1/models/..%2f..", "/v1/%00", "/v1/%zz", "/v1/%"):
        yield Case(f"the target {target}", "RFC 3986, 2.1", get(target=target), ("4xx",))
    yield Case("two slashes", "RFC 9110, 4.2.3", get(target="//v1/models"), ("4xx",))
    yield Case("dots in a target", "RFC 3986, 5.2.4", get(target="/v1/../v1/models"), ("200|4xx",))
    long = get(target=f"/{'a' * 40000}")
    yield refused("a target of 40 000 bytes", "RFC 9110, 15.5.15", long, "414")
    yield refused("a target with a space", _TARGET, get(target="/v1/mod els"))


def _versions() -> Iterator[Case]:
    for version in (*("HTTP/1.2", "HTTP/1.9", "HTTP/0.9", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"),):
        # A higher minor version is to be taken as 1.1 or refused.
        wanted = "200|400|505" if version in ("HTTP/1.2", "HTTP/1.9") else "400|505"
        yield Case(f"version {version}", _VERSION, get(version=version), (wanted,))
    for version in (
        *("HTTP/1", "HTTP/1.", "HTTP/.1", "HTTP/1.1.1", "HTTP/1,1", "HTTP/11.1", "HTTP/1.10"),
        *("HTTP/01.1", "HTTP/+1.1", "HTTP/1 .1", "http/1.1", "HTP/1.1", "HTTPS/1.1", "HTTP 1.1"),
        *("HTTP1.1", "HTTP/x.y", "ICE/1.0"),
    ):
        yield refused(f"version {version}", _VERSION, get(version=version), "400|505")
    # The parser takes a sister protocol for HTTP/1.0; an invalid line SHOULD be refused (RFC 9112, 3).
    yield Case("version RTSP/1.0", _VERSION, get(version="RTSP/1.0"), ("200|400|505",))
    yield refused("no target", _LINE, _line("GET HTTP/1.1"))


def _space() -> Iterator[Case]:
    yield served("an empty line first", _ENDS, "\r\n" + get())
    # A recipient may take other white space apart (RFC 9112, 3), or refuse the line.
    yield Case("two spaces", _LINE, _line("GET  /v1/models HTTP/1.1"), ("200|400",))
    yield Case("two spaces later", _LINE, _line("GET /v1/models  HTTP/1.1"), ("200|400",))
    yield Case("a tab", _LINE, _line("GET\t/v1/models HTTP/1.1"), ("200|400",))
    yield Case("a space at the end", _LINE, _line("GET /v1/models HTTP/1.1 "), ("200|400",))
    yield refused("a space first", _LINE, _line(" GET /v1/models HTTP/1.1"))
    yield refused("a vertical tab", _LINE, _line("GET\x0b/v1/models HTTP/1.1"))
    yield refused("a line that ends in LF", _ENDS, get().replace("\r\n", "\n", 1))
    yield refused("a line that ends in CR", _ENDS, get().replace("\r\n", "\r", 1))
    indented = get().replace("\r\nHost", "\r\n Host", 1)
    yield refused("white space before the first header", _ENDS, indented)
    yield refused("an empty line of LF first", _ENDS, "\n\n \n" + get())
    tls, preface = "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield refused("bytes of TLS", _LINE, tls)
    yield refused("the preface of HTTP/2", "RFC 9113, 3.4", preface, "400|505")
