"""A request: where it goes, its head, and its failures, by what the server can have done with it."""

from __future__ import annotations

import enum
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import quote, urlsplit

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_KEPT_IN_PATHS: Final = "/%:@!$&'()*+,;=~"
_FRAMING: Final = frozenset(
    ["connection", "content-length", "host", "transfer-encoding", "upgrade"]
)


@dataclass(frozen=True, slots=True)
class Origin:
    """What a connection belongs to."""

    host: str
    port: int
    tls: bool

    @property
    def authority(self) -> str:
        """The value of the Host header (RFC 9110, 7.2); the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request without its body, rendered once and sent many times."""

    origin: Origin
    lines: bytes
    """The request line and all header lines but those that describe the body and the connection."""

    @classmethod
    def of(cls, method: str, url: str, headers: Mapping[str, str]) -> RequestHead:
        """Render a request of ``method`` to ``url``; later headers replace earlier ones of the name.

        Raises ``ValueError`` for an address that is not ``http(s)://host...``, and for a header that
        cannot be sent or that the client itself decides.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
            raise ValueError("The address is not http:// or https:// and a host.")
        tls = parts.scheme == "https"
        origin = Origin(_host(parts.hostname), parts.port or (443 if tls else 80), tls)
        path = quote(parts.path or "/", safe=_KEPT_IN_PATHS)
        if parts.query:
            path += "?" + quote(parts.query, safe=_KEPT_IN_PATHS + "?")
        lines = [f"{method} {path} HTTP/1.1", f"host: {origin.authority}"]
        lines += [f"{name}: {value}" for name, value in _checked(headers).items()]
        return cls(origin, ("\r\n".join(lines) + "\r\n").encode())

    def extended(self, lines: bytes) -> RequestHead:
        """The same request with ``lines`` of headers, which end with a line end, behind its own."""
        return RequestHead(self.origin, self.lines + lines)

    def render(self, length: int | None, *, close: bool) -> bytes:
        """Return the whole head for a body of ``length`` bytes, or for none.

        ``close`` asks the server to close the connection after its answer.
        """
        head = self.lines
        if close:
            head += b"connection: close\r\n"
        return head + (b"\r\n" if length is None else b"content-length: %d\r\n\r\n" % length)


def _host(name: str) -> str:
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError("The host is no name of the DNS.") from None


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, value in headers.items():
        lowered = name.lower()
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value) or lowered in _FRAMING:
            raise ValueError(f"The header {lowered!r} cannot be sent.")
        checked[lowered] = value.strip(" \t")
    return checked


class HttpError(Exception):
    """An exchange failed. No message holds a byte of the request or of the answer.

    ``may_have_run``: whether the server can have received the whole request and started on it.
    ``reused``: whether the connection had carried an earlier exchange.
    """

    may_have_run: ClassVar[bool] = True

    def __init__(self, message: str = "", *, reused: bool = False) -> None:
        super().__init__(message)
        self.reused = reused


class Obstacle(enum.Enum):
    """Why no connection could be made."""

    UNKNOWN_NAME = "unknown name"
    REFUSED = "refused or unreachable"
    TIMED_OUT = "timed out"
    TLS = "no TLS connection"


class ConnectError(HttpError):
    """No connection could be made. ``cause`` is the system's error, or that of TLS."""

    may_have_run = False

    def __init__(self, obstacle: Obstacle, cause: Exception | None = None) -> None:
        said = f": {_words_of(cause)}" if isinstance(cause, ssl.SSLError) else ""
        super().__init__(obstacle.value + said)
        self.obstacle = obstacle
        self.cause = cause


def _words_of(error: ssl.SSLError) -> str:
    """The reason that OpenSSL gives, by which an operator tells an expired certificate from a wrong name."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return error.reason or type(error).__name__


class WriteError(HttpError):
    """The connection ended before the whole request was handed to the system's socket."""

    may_have_run = False


class ServerDisconnected(HttpError):
    """The connection ended after the request was sent and before the first byte of an answer.

    On a reused connection the server had probably closed it while it was idle (RFC 9112, 9.3.1). That
    is no proof: a server that crashes on the request looks the same.
    """


class ReadError(HttpError):
    """The connection ended inside an answer: in its head, or before the end of its body."""


class RemoteProtocolError(HttpError):
    """The server sent something else than an HTTP/1.1 answer within this client's bounds."""


class Phase(enum.Enum):
    """What an exchange waited for when its time was over."""

    SENDING = "sending the request"
    FIRST_BYTE = "the head of the answer"
    BODY = "the body of the answer"


class TimedOut(HttpError):
    """The deadline of the exchange passed; the connection is closed."""

    def __init__(self, phase: Phase, *, reused: bool = False) -> None:
        super().__init__(phase.value, reused=reused)
        self.phase = phase


class BodyTooLarge(HttpError):
    """The body is longer than the caller's bound; the connection is closed."""


class Closed(HttpError):
    """This side closed the answer or the client."""
