"""Inputs that a library below drops, rewrites or takes without a word: what a caller sees of them.

The table of docs/explain/threat-model.md ("What the libraries do in silence") names these tests.
"""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from django.test import Client

from accounts.models import User
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account

LINE = "GET /v1/models HTTP/1.1\r\n"
HEADERS = "host: 127.0.0.1\r\n{key}\r\n"
SERVED = {
    "several spaces in the request line": LINE.replace(" ", "   ") + HEADERS,
    "empty lines before the request": "\r\n\r\n" + LINE + HEADERS,
    "a fragment in the target": LINE.replace("models", "models#a?b=c") + HEADERS,
    "bytes that are no ASCII in a header": LINE + "x-one: \xe9\xff\r\n" + HEADERS,
    "an Accept that nobody can serve": LINE + "accept: text/xml\r\n" + HEADERS,
    "an Expect that nobody knows": LINE + "expect: 200-ok\r\n" + HEADERS,
    "a format that there is not": LINE.replace("models", "models?format=xml") + HEADERS,
    "two Cookie headers": LINE + "cookie: a=b\r\ncookie: a=c\r\n" + HEADERS,
    "names with underscores": LINE
    + "content_length: 4\r\ntransfer_encoding: chunked\r\n"
    + HEADERS,
    "an RTSP version": LINE.replace("HTTP/1.1", "RTSP/1.0") + HEADERS,
}
REFUSED = {
    "the preface of HTTP/2": (400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a handshake of TLS": (400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "tabs in the request line": (400, LINE.replace(" ", "\t") + HEADERS),
    "a method in lower case": (400, LINE.replace("GET", "get") + HEADERS),
    "a target that is no ASCII": (400, LINE.replace("models", "models?a=\xe9") + HEADERS),
    "a method of another protocol": (405, LINE.replace("GET", "SOURCE") + HEADERS),
    "a method in a header": (
        *(405, LINE.replace("GET", "POST") + "x-http-method-override: GET\r\n" + HEADERS),
    ),
    "two keys": (401, LINE + "{key}" + HEADERS),
    "two keys, one of them invented": (401, LINE + "authorization: Bearer a\r\n" + HEADERS),
    "a path in parameters": (404, LINE.replace("models", "models;a=b") + HEADERS),
    "escapes that are no UTF-8": (404, LINE.replace("models", "models/%ff%c0%af") + HEADERS),
}


def ask(gateway: Gateway, request: str) -> tuple[int, dict[str, str], bytes]:
    with RawClient(gateway) as client:
        client.send(
            request.replace("{key}", f"authorization: Bearer {gateway.key}\r\n").encode("latin-1")
        )
        return client.answer()


@pytest.mark.parametrize("case", SERVED)
def test_what_means_nothing_changes_nothing(gateway: Gateway, case: str) -> None:
    status, headers, body = ask(gateway, SERVED[case])

    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["object"] == "list"


@pytest.mark.parametrize("case", REFUSED)
def test_what_could_mean_two_things_is_refused(gateway: Gateway, case: str) -> None:
    expected, request = REFUSED[case]
    status, headers, body = ask(gateway, request)

    assert status == expected
    assert headers["x-request-id"]
    assert json.loads(body)["error"]["message"]


def test_what_follows_a_last_request_is_dropped(gateway: Gateway) -> None:
    with RawClient(gateway) as client:
        client.send(f"{LINE}connection: close\r\nhost: a\r\n\r\n{LINE}host: a\r\n\r\n".encode())

        assert client.rest().count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("offer", "status"),
    [
        ("sec-websocket-protocol: a, b", 101),
        ("sec-websocket-extensions: x-webkit-deflate-frame", 101),
        ("origin: https://a.example\r\norigin: https://b.example", 400),
        ("sec-websocket-extensions: ;=,", 400),
    ],
)
def test_what_a_handshake_offers_is_told_or_refused(
    gateway: Gateway, offer: str, status: int
) -> None:
    """A client that insists on what is not told fails by itself (RFC 6455, section 4.1)."""
    key = speech_account(gateway).key
    with RawClient(gateway, gateway.speech_port) as client:
        head = client.upgrade(key, offer)

    assert head.startswith(f"http/1.1 {status} ".encode())
    assert b"sec-websocket-protocol" not in head
    assert b"sec-websocket-extensions" not in head


PASSWORD = "correct horse battery"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"


def part(name: str, value: str, more: str = "") -> str:
    return f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n{more}\r\n{value}\r\n'


NAME = quote("ada@svc.example")
GOOD = f"username={NAME}&password={quote(PASSWORD)}"
LOGINS = {
    "as a browser sends it": (True, FORM, GOOD),
    "a field twice, of which the last counts": (True, FORM, f"username=x&password=x&{GOOD}"),
    "as multipart": (
        *(True, MULTIPART),
        part("username", "ada@svc.example") + part("password", PASSWORD) + "--b--\r\n",
    ),
    "a field twice, the last one wrong": (False, FORM, f"{GOOD}&password=x"),
    "semicolons between fields": (False, FORM, GOOD.replace("&", ";")),
    "JSON": (False, "application/json", '{"username": "ada@svc.example", "password": "x"}'),
    "a NUL": (False, FORM, GOOD.replace("ada", "ada%00")),
    "escapes that are no UTF-8": (False, FORM, GOOD.replace("ada", "%ff%ed%a0%80")),
    "escapes that are none": (False, FORM, GOOD.replace("ada", "%zz%")),
    "a charset that is none": (False, f"{FORM}; charset=nonsense", GOOD.replace("ada", "eva")),
    "multipart without a boundary": (False, "multipart/form-data", GOOD),
    "multipart that breaks off": (False, MULTIPART, part("username", "a")[:40]),
    "multipart of unknown coding": (
        *(False, MULTIPART),
        part("username", "?", "Content-Transfer-Encoding: base64\r\n") + "--b--\r\n",
    ),
    "a file for a field": (
        *(False, MULTIPART),
        part('username"; filename="../../x', "ada@svc.example")
        + part("password", PASSWORD)
        + "--b--\r\n",
    ),
    "two thousand fields": (False, FORM, "a=1&" * 2000 + GOOD),
}


@pytest.mark.django_db
@pytest.mark.parametrize("case", LOGINS)
def test_a_form_is_read_in_one_way_or_refused(case: str) -> None:
    User.objects.create_user("ada@svc.example", PASSWORD)
    succeeds, kind, body = LOGINS[case]
    client = Client(raise_request_exception=False)
    answer = client.generic("POST", "/console/login", body.encode(), content_type=kind)

    assert answer.status_code in ((302,) if succeeds else (200, 400))
    assert ("_auth_user_id" in client.session) == succeeds
