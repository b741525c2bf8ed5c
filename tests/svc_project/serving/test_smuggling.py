"""An ambiguous HTTP request gets one refusal and a closed connection, and nothing runs."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable

import pytest

from svc_project.serving.http_protocol import LARGEST_HEAD, LARGEST_TARGET, MOST_HEADERS
from tests.support.clients.raw_client import RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway

SMUGGLED = b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
"""The bytes that an attacker wants the server to take for a second request."""

CHUNKED = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n"
)
POST = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
GET = "GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n"

AMBIGUOUS = {
    "content-length and transfer-encoding": POST
    + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "transfer-encoding and content-length": POST
    + "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
    "two lengths that differ": POST + "content-length: 4\r\ncontent-length: 40\r\n\r\nabcd",
    "two lengths alike": POST + "content-length: 4\r\ncontent-length: 4\r\n\r\nabcd",
    "lengths in a list": POST + "content-length: 4, 4\r\n\r\nabcd",
    "a signed length": POST + "content-length: +4\r\n\r\nabcd",
    "a negative length": POST + "content-length: -4\r\n\r\nabcd",
    "a length beyond counting": POST + "content-length: 99999999999999999999999\r\n\r\nabcd",
    "a length of 5000 zeros": POST + "content-length: " + "0" * 5000 + "\r\n\r\n",
    "a length of 5000 zeros and an upgrade": GET
    + "connection: upgrade\r\nupgrade: websocket\r\ncontent-length: "
    + "0" * 5000
    + "\r\n\r\n",
    "an unknown coding": POST + "transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding that is not undone": POST + "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked not last": POST + "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": POST
    + "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a hidden coding": POST + "transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunked over HTTP/1.0": CHUNKED.replace("1.1", "1.0") + "0\r\n\r\n",
    "a folded header": GET + "x-one: 1\r\n two\r\n\r\n",
    "a folded coding": POST + "transfer-encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "lines that end in LF": GET.replace("\r\n", "\n") + "\n",
    "one line that ends in LF": GET + "x-one: 1\nx-two: 2\r\n\r\n",
    "a line that ends in CR": GET + "x-one: 1\rx-two: 2\r\n\r\n",
    "space before the colon": GET + "x-one : 1\r\n\r\n",
    "a header without a name": GET + ": 1\r\n\r\n",
    "NUL in a header": GET + "x-one: a\0b\r\n\r\n",
    "a control character in a header": GET + "x-one: a\x1cb\r\n\r\n",
    "NUL in the path": GET.replace("/v1/models", "/v1/\0models") + "\r\n",
    "a chunk extension that ends in LF": CHUNKED + "1;a=b\nx\r\n0\r\n\r\n",
    "chunk lines that end in LF": CHUNKED + "1\nx\n0\n\n",
    "a chunk longer than it says": CHUNKED + "1\r\nxyz0\r\n\r\n",
    "a chunk size beyond counting": CHUNKED + "fffffffffffffffff\r\nx\r\n0\r\n\r\n",
    "a negative chunk size": CHUNKED + "-1\r\nx\r\n0\r\n\r\n",
    "a chunk size with 0x": CHUNKED + "0x1\r\nx\r\n0\r\n\r\n",
    "two hosts": GET + "host: evil.example\r\n\r\n",
    "no host": "GET /v1/models HTTP/1.1\r\n\r\n",
    **{
        f"the host {host!r}": GET.replace("127.0.0.1", host) + "\r\n"
        for host in (
            *("a b", "a/b", "user@a", "[::1", "a:b", "a:80:80", "a%2", "\xe9", "http://a", "[x]"),
        )
    },
    "an unknown version": GET.replace("HTTP/1.1", "HTTP/3.7") + "\r\n",
    "no version": "GET /v1/models\r\n\r\n",
}


@pytest.fixture(params=["inference", "speech"])
def surface(request: pytest.FixtureRequest, gateway: Gateway) -> int:
    return gateway.port if request.param == "inference" else gateway.speech_port


def refused(client: RawClient, status: int = 400) -> dict[str, str | None]:
    """The one answer, after which the connection is closed."""
    received = client.rest()
    assert received.count(b"HTTP/1.1 ") == 1, received
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), received
    assert b"\r\nconnection: close" in head
    assert b"\r\nx-request-id: req_" in head
    assert re.search(
        rb"\r\ndate: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\n", head
    )  # RFC 9110, 6.6.1
    error: dict[str, str | None] = json.loads(body)["error"]
    assert error["type"] == "invalid_request_error"
    return error


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_request_gets_one_refusal(gateway: Gateway, case: str) -> None:
    asked = len(gateway.simulator.requests())
    with RawClient(gateway) as client:
        client.send(AMBIGUOUS[case].encode("latin-1") + SMUGGLED)
        refused(client)

    assert len(gateway.simulator.requests()) == asked
    assert gateway.rows() == []


@pytest.mark.parametrize(
    "target", ["127.0.0.1:22", "/v1/chat/completions", "*", "//127.0.0.1:80", "http://127.0.0.1/"]
)
def test_a_tunnel_is_refused_in_any_form(gateway: Gateway, surface: int, target: str) -> None:
    """What follows is never taken for a request, whatever length the head announces."""
    with RawClient(gateway, surface) as client:
        client.send(
            f"CONNECT {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"content-length: {len(SMUGGLED)}\r\n\r\n".encode()
        )
        client.read_until(1, b"}}")
        with contextlib.suppress(ConnectionError):
            client.send(SMUGGLED)
        refused(client, 405)
        assert b"\r\nallow: GET, HEAD, POST, " in client.received


def test_a_chunk_extension_is_no_part_of_the_body(gateway: Gateway) -> None:
    body = json.dumps(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: chunks"}]}
    )
    with RawClient(gateway) as client:
        client.head("transfer-encoding: chunked", key=gateway.key)
        client.send(f"{len(body):x};name=value\r\n{body}\r\n0\r\n\r\n".encode())
        status, _, answer = client.answer()

    assert status == 200
    assert json.loads(answer)["choices"][0]["message"]["content"] == "chunks"


def with_headers(*headers: str) -> str:
    return GET + "\r\n".join(headers) + "\r\n\r\n"


OTHERS = (
    *("http://evil.example", "http://127.0.0.1:1", "http://user@127.0.0.1"),
    *("https://127.0.0.1:80", "http://127.0.0.1.evil.example", "http://localhost"),
)
REFUSED: dict[str, tuple[int, str, str]] = {
    # The target decides where it and the Host header differ (RFC 9112, section 3.2.2).
    **{
        f"{other} in the target": (
            400,
            GET.replace("/v1", f"{other}/v1", 1) + "\r\n",
            "different hosts",
        )
        for other in OTHERS
    },
    "a long address": (
        *(
            414,
            GET.replace("models", "models?" + "a" * LARGEST_TARGET) + "\r\n",
            str(LARGEST_TARGET),
        ),
    ),
    **{
        f"{kind} headers": (431, with_headers(*headers), str(LARGEST_HEAD))
        for kind, headers in {
            "many": [f"x-{number}: 1" for number in range(MOST_HEADERS)],
            "one long": ["x-long: " + "a" * LARGEST_HEAD],
            "several long": [f"x-{number}: {'a' * 8192}" for number in range(5)],
        }.items()
    },
    "many trailers": (
        431,
        f"{GET}transfer-encoding: chunked\r\n\r\n0\r\n"
        + "".join(f"x-{number}: 1\r\n" for number in range(MOST_HEADERS + 1))
        + "\r\n",
        "",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_names_another_host_or_exceeds_a_bound_is_refused(gateway: Gateway, case: str) -> None:
    status, request, named = REFUSED[case]
    with RawClient(gateway) as client:
        client.send(request.encode() + (SMUGGLED if status == 400 else b""))
        error = refused(client, status)

    assert named in str(error["message"])


def with_key(target: str, host: str, after: str = "") -> str:
    key = f"authorization: Bearer KEY{after}"
    return f"GET {target} HTTP/1.1\r\nhost: {host}{after}\r\n{key}\r\n\r\n"


MODELS = "/v1/models"
TRAILER = GET + "transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
CLEAR: dict[str, tuple[int, str]] = {
    # The target decides where it and the Host header differ (RFC 9112, section 3.2.2).
    "the host in the target": (200, with_key(f"http://127.0.0.1{MODELS}", "127.0.0.1")),
    "the host in capitals": (200, with_key(f"HTTP://LOCALHOST:80{MODELS}?a=b", "localhost")),
    "the port of https": (200, with_key(f"https://localhost{MODELS}", "LocalHost:443")),
    "another port in both": (200, with_key(f"http://127.0.0.1:8000{MODELS}", "127.0.0.1:8000")),
    "a model with escapes": (200, with_key(f"{MODELS}/acme%2Fdemo-8b", "127.0.0.1")),
    # RFC 9110, section 5.5.
    **{
        f"space {after!r} behind the values of {path}": (status, with_key(path, "127.0.0.1", after))
        for after in (" ", "\t", " \t  ")
        for path, status in ((MODELS, 200), ("/v1/chat/completions", 405))
    },
    # A key in a trailer does not authenticate; a second Host in one changes nothing.
    **{
        f"{name} in a trailer": (401, TRAILER + f"{name}: Bearer KEY\r\n\r\n")
        for name in ("authorization", "x-forwarded-for", "host")
    },
    "headers within the bounds": (
        *(401, GET + "".join(f"x-{n}: {'a' * 280}\r\n" for n in range(MOST_HEADERS - 1)) + "\r\n"),
    ),
    # A proxy that blocks /admin or /metrics compares the raw path.
    **{
        f"an escape in the first part of {path}": (400, with_key(path, "127.0.0.1"))
        for path in (
            *(
                *("/%61dmin/", "/admin%2flogin/", "/%61%64%6d%69%6e/login/", "/%6detrics"),
                "/metric%73",
            ),
            *("/%63onsole/login", "/livez%3f", "/%76%31/models", "/%"),
        )
    },
}


@pytest.mark.parametrize("case", CLEAR)
def test_what_has_one_meaning_is_answered_by_it(gateway: Gateway, case: str) -> None:
    expected, request = CLEAR[case]
    with RawClient(gateway) as client:
        client.send(request.replace("KEY", gateway.key).encode())
        status, _, body = client.answer()

    assert status == expected
    assert status != 400 or "percent" in json.loads(body)["error"]["message"]


def test_a_request_that_was_answered_is_not_answered_again(gateway: Gateway) -> None:
    """Its body, which nobody waits for, turns out to be no chunk."""
    with RawClient(gateway) as client:
        client.send(CHUNKED.replace("chat/completions", "nothing").encode())
        assert client.answer()[0] == 404
        client.send(b"no chunk\r\n")
        received = client.rest()

    assert received.count(b"HTTP/1.1 ") == 1


def test_a_refusal_reaches_a_client_that_is_still_writing(gateway: Gateway) -> None:
    """Closed with unread bytes, the connection would be reset, and the answer lost."""
    with RawClient(gateway) as client:
        client.send((GET + "x-long: " + "a" * LARGEST_HEAD + "\r\nx").encode())
        client.read_until(1, b"}}")
        client.received = b""
        for _ in range(8):
            client.send(b"a" * 65536)
        assert client.rest() == b""

    with RawClient(gateway) as client:
        client.send((GET + "x-long: " + "a" * LARGEST_HEAD).encode())
        client.send(b"a" * 400_000 + b"\r\n\r\n")
        refused(client, 431)


@pytest.mark.parametrize("start", ["GET /v1/models?", GET + "x-endless: "], ids=["line", "header"])
def test_a_line_that_does_not_end_is_cut_off(gateway: Gateway, start: str) -> None:
    with RawClient(gateway) as client:
        client.send(start.encode())
        sent = 0
        try:
            while sent < 8 * 1024 * 1024:
                client.send(b"a" * 65536)
                sent += 65536
        except ConnectionError:
            pass

    assert sent < 8 * 1024 * 1024


def test_a_head_that_arrives_too_slowly_is_refused(gateway_with: Callable[..., Gateway]) -> None:
    gateway = gateway_with(**IMPATIENT)
    with RawClient(gateway) as client:
        client.send(b"GET /v1/models HTTP/1.1\r\nhost:")
        refused(client, 408)
    with RawClient(gateway) as client:
        client.send((GET + "\r\n").encode())
        client.answer()
        client.received = b""
        client.send(b"GET /v1")
        refused(client, 408)
    with RawClient(gateway) as client:
        assert client.rest() == b""


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1@evil.example", "127.0.0.1/..", "a, b"])
def test_a_host_that_is_not_served_is_refused_on_both_surfaces(
    gateway: Gateway, surface: int, host: str
) -> None:
    for request in ("GET /v1/models", "POST /v1/chat/completions", "POST /v1/audio/speech"):
        with RawClient(gateway, surface) as client:
            client.send(
                f"{request} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n"
                "connection: close\r\n\r\n".encode()
            )
            received = client.rest()
        assert received.startswith(b"HTTP/1.1 400 "), received
        assert b"evil" not in received


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/models%0d%0aset-cookie:%20a=b", "/v1/models%00", "/v1/models/%0d%0ax:%20y"),
        *("//evil.example/v1/models", "/v1/%2e%2e/admin/"),
        *("/console/login?next=%0d%0aset-cookie:%20a=b", "/console%0d%0aset-cookie:%20a=b", "/%ff"),
        "http://evil.example/console/keys",
    ],
)
def test_nothing_of_an_address_becomes_a_header(gateway: Gateway, path: str) -> None:
    with RawClient(gateway) as client:
        client.send(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n".encode())
        received = client.rest()

    assert received.count(b"HTTP/1.1 ") == 1
    head = received.partition(b"\r\n\r\n")[0].lower()
    assert not head.startswith(b"http/1.1 5"), received
    assert b"a=b" not in head.replace(b"%20a=b", b"")
    assert b"\r\nx: y" not in head
    assert b"location: //evil" not in head
    assert b"location: http://evil" not in head
