"""The part of a request that is the same each time: where it goes, and its head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
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
