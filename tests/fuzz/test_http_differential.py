"""The gateway and nginx find the same requests in the same bytes, or the reason is listed here.

Where two readers of one connection disagree about where a request ends, one client can get the answer
to another. nginx is the strictest reader among the proxies that run in front of gateways.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from tests.support.fuzzing.byte_edits import edited
from tests.support.fuzzing.http_reading import Malformed, read_received, request_at
from tests.support.fuzzing.http_tokens import (
    CODINGS,
    CONNECTIONS,
    HARMLESS,
    LENGTHS,
    METHODS,
    ODD_HEADERS,
    PIECES,
    TARGETS,
    UPGRADES,
    VERSIONS,
)
from tests.support.fuzzing.seeds import BOUNDS, batches
from tests.support.live import Gateway
from tests.support.servers.nginx import running_nginx

MESSAGES = 1_200
AT_ONCE = 32
QUIET = (0.4, 2.0)
"""Seconds without a byte after which nothing more is expected, at first and on the second look."""
BUSY = 30.0
"""Seconds for the first byte of a server that had sent none on the second look."""
HOSTS = (
    *(
        *("127.0.0.1", "127.0.0.1:80", "localhost", "[::1]", "a,b", "", "a b", "a/b", "a@b"),
        *("[::1", "\xe9"),
    ),
)
NGINX = """
server {
  listen 127.0.0.1:PORT;
  client_header_buffer_size 64k; large_client_header_buffers 4 64k; client_max_body_size 0;
  location / { default_type text/plain; return 200 "read"; }
}
"""
LAST = b"GET /v1/last HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
INNER = b"GET /v1/inner HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
"""A body that is one request more for who does not take it for a body."""
REFUSALS = {400, 405, 408, 413, 414, 421, 431, 501, 505}


@dataclass(frozen=True)
class Message:
    seed: int
    sent: bytes


def message_of(seed: int) -> Message:
    """Make one request, broken in up to three ways, with a valid one behind it."""
    random = Random(seed)
    method = random.choice(("GET", "POST", "PUT", "DELETE", "OPTIONS"))
    target, version = "/v1/first", "HTTP/1.1"
    headers = [f"host: {random.choice(HOSTS) if random.random() < 0.1 else '127.0.0.1'}"]
    body = b""
    for kind in random.choices(range(9), k=random.choice((0, 1, 1, 2, 3))):
        if kind == 0:
            method = random.choice(METHODS)
        elif kind == 1:
            target = random.choice(TARGETS)
        elif kind == 2:
            version = random.choice(VERSIONS)
        elif kind == 3:
            headers.insert(random.randrange(len(headers) + 1), random.choice(ODD_HEADERS))
        elif kind == 4:
            headers.append(f"content-length: {random.choice(LENGTHS)}")
        elif kind == 5:
            headers.append(f"transfer-encoding: {random.choice(CODINGS)}")
        elif kind == 6:
            headers.append(random.choice(HARMLESS))
        elif kind == 7:
            headers.append(f"upgrade: {random.choice(UPGRADES)}")
            headers.append(f"connection: {random.choice(CONNECTIONS)}")
        else:
            inner = INNER if random.random() < 0.5 else b"abcd"
            if random.random() < 0.5:
                headers.append(f"content-length: {len(inner)}")
                body = inner
            else:
                headers.append("transfer-encoding: chunked")
                extension = random.choice((b"", b";a=b", b';a="b"', b" "))
                end = random.choice((b"0\r\n\r\n", b"000\r\n\r\n", b"0\r\nx: 1\r\n\r\n", b"0\n\n"))
                body = b"%x%s\r\n%s\r\n%s" % (len(inner), extension, inner, end)
    head = "\r\n".join([f"{method} {target} {version}", *headers])
    sent = head.encode("latin-1") + b"\r\n\r\n" + body
    if random.random() < 0.4:
        sent = edited(random, sent, PIECES)
    return Message(seed, sent + LAST)


async def reading_of(port: int, message: Message, quiet: float) -> str:
    """Return what a server read: "r" for a request, "x" for a refusal, "." for an end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received, ended = bytearray(), False
    try:
        writer.write(message.sent)
        while not ended:
            part = await asyncio.wait_for(reader.read(65536), quiet)
            received += part
            ended = not part
    except TimeoutError:
        pass
    except OSError:
        ended = True
    finally:
        writer.transport.abort()
    methods = ["HEAD" if message.sent.lstrip(b"\r\n").startswith(b"HEAD ") else "GET"]
    try:
        found = read_received(bytes(received), methods)
    except Malformed:
        return "raw"
    outcomes = "".join(
        "x" if each.status in REFUSALS and each.closes else "r" for each in found.answers
    )
    if outcomes.endswith("x"):
        return outcomes + "."  # what follows is dropped, for a second or until a body has come
    return outcomes + ("?" if found.rest else "") + ("." if ended else "~")


async def differences(
    gateway: int, nginx: int, messages: Iterator[Message]
) -> list[tuple[Message, str, str]]:
    found: list[tuple[Message, str, str]] = []

    async def compare_some() -> None:
        for message in messages:
            for quiet in QUIET:
                ours, theirs = await asyncio.gather(
                    reading_of(gateway, message, quiet), reading_of(nginx, message, quiet)
                )
                if ours == theirs:
                    break
            else:
                if "~" in (ours, theirs):  # nothing yet, as where the machine is busy
                    ours, theirs = await asyncio.gather(
                        reading_of(gateway, message, BUSY), reading_of(nginx, message, BUSY)
                    )
                if ours != theirs:
                    found.append((message, ours, theirs))

    await asyncio.gather(*(compare_some() for _ in range(AT_ONCE)))
    return found


_KNOWN = (
    *(b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT"),
    *(b"LOCK", b"M-SEARCH", b"PURGE", b"QUERY", b"SOURCE"),
)
"""The methods of ``http_tokens`` that llhttp knows."""


def _with(field: bytes, value: bytes) -> re.Pattern[bytes]:
    """Match a message that has ``field`` with a value that begins so."""
    return re.compile(rb"(?s:.*?)\r\n%s:%s" % (field, value), re.IGNORECASE)


ONLY_THE_GATEWAY_REFUSES = {
    "a method that llhttp does not know": re.compile(rb"(?!(%s) )" % b"|".join(_KNOWN)),
    "a version that is neither 1.0 nor 1.1": re.compile(
        rb"[^\r\n]* (?!HTTP/1\.[01]\r\n)[^ \r\n]*\r\n"
    ),
    "a line that ends in LF": re.compile(rb"(?s:.*?)(?<!\r)\n"),
    "a control character in the head": re.compile(
        rb"((?!\r\n\r\n)[^\0])*?[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
    ),
    "a Host that names no host": _with(
        b"host", rb"[ \t]*(?![\w.-]*(:\d*)?[ \t]*\r\n|\[[0-9a-f:]+\]\r\n)"
    ),
    "more than 100 headers": re.compile(rb"([^\r\n]+\r\n){101}"),
    "a head above 32 KiB, or a target above 16 KiB": re.compile(rb"((?!\r\n\r\n)(?s:.)){16384}"),
}
"""What the gateway refuses and nginx reads, besides everything that h11 refuses too."""
ONLY_NGINX_REFUSES = {
    "a NUL in the path, escaped, or half an escape": re.compile(
        rb"\S+ +\S*%(00|(?![0-9A-Fa-f]{2}))"
    ),
    "a path that leaves the root, or a target that begins with *": re.compile(
        rb"\S+ +(\*|\S*/\.\.)"
    ),
    "a Host without a name, or that has two dots together or a tab": _with(
        b"host", rb"([ \t]*(:\d*)?[ \t]*|[^\r\n]*(\.\.|\t)[^\r\n]*)\r\n"
    ),
    "a header that nginx knows, twice": re.compile(
        rb"(?s:.*?)\r\n(expect|if-match|range|user-agent|keep-alive|via):(?s:.*?)\r\n\1:",
        re.IGNORECASE,
    ),
    "a length above what nginx counts to": _with(b"content-length", rb"[ \t]*\d{19}"),
    "a tab beside the length or the coding": _with(
        b"(content-length|transfer-encoding)", rb"[^\r\n]*\t"
    ),
    "RTSP/1.0 and ICE/1.0, which llhttp reads as HTTP/1.0": re.compile(
        rb"\S+ +\S+ +(RTSP|ICE)/1\.0\r\n"
    ),
    "TRACE, which has no meaning to the gateway": re.compile(rb"TRACE "),
}
"""What nginx refuses and the gateway reads, by the framing that nginx would read it by."""
ONLY_ONE_CLOSES = {
    "an option's name with another in it, which nginx takes for that": _with(
        b"connection", rb"[^\r]*([\w:] ?close|close[\w:]|\wkeep-alive)"
    ),
    "several Connection headers, of which nginx takes the last": _with(
        b"connection", rb"(?s:.*?)\r\nconnection:"
    ),
    "HTTP/1.0, after whose answers the gateway may close (RFC 9112, 9.3)": re.compile(
        rb"[^\r\n]* HTTP/1\.0\r\n"
    ),
    "If-Match, to which nginx answers 412": _with(b"if-match", b""),
}
"""Where both read the same request, and one of them ends the connection after it."""


def reason_of(sent: bytes, ours: str, theirs: str) -> str | None:
    """Return why two readings differ, or None where that is listed nowhere."""
    alike = next(n for n in range(len(ours)) if ours[: n + 1] != theirs[: n + 1])
    rest, is_valid = request_at(sent, alike)
    after = ours[alike:], theirs[alike:]
    if alike and "." in after:
        listed = ONLY_ONE_CLOSES
        rest, _ = request_at(sent, alike - 1)
    elif after[0] == "x.":
        if not is_valid:
            return "h11 refuses it too"
        listed = ONLY_THE_GATEWAY_REFUSES
    elif after[1] == "x.":
        listed = ONLY_NGINX_REFUSES
    else:
        return None
    return next((reason for reason, written in listed.items() if written.match(rest)), None)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_gateway_and_nginx_read_the_same_requests(
    gateway_with: Callable[..., Gateway], tmp_path: Path
) -> None:
    gateway = gateway_with(**BOUNDS)
    reasons: Counter[str] = Counter()
    with running_nginx(tmp_path, NGINX) as nginx:
        for seeds in batches(MESSAGES):
            found = asyncio.run(differences(gateway.port, nginx, map(message_of, seeds)))
            unlisted = []
            for message, ours, theirs in found:
                reason = reason_of(message.sent, ours, theirs)
                reasons[str(reason)] += 1
                if reason is None:
                    shown = repr(message.sent)[:2000]
                    unlisted.append(f"seed {message.seed}: {ours}, nginx {theirs}: {shown}")
            assert not unlisted, "\n".join(unlisted)
    print(*(f"{number:6} {reason}" for reason, number in reasons.most_common()), sep="\n")
