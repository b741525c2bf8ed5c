"""Request bodies that are too large, too slow, or not JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.support.clients.raw_client import RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway

MEGABYTE = 1_048_576
HUGE = 300_000_000
READ_AT_MOST = 16 * MEGABYTE
"""Bytes that the gateway reads and sockets buffer together, with a margin."""


def send_while_it_is_taken(client: RawClient, chunks: Iterator[bytes]) -> int:
    """Send ``chunks`` until all are sent or the gateway stops reading; return the bytes sent."""
    sent = 0
    client.set_timeout(5)
    try:
        for chunk in chunks:
            client.send(chunk)
            sent += len(chunk)
    except (ConnectionError, TimeoutError):
        pass
    return sent


def chunked(size: int) -> Iterator[bytes]:
    """Yield a chunked body (RFC 9112, section 7.1)."""
    block = b"x" * 65_536
    for _ in range(size // len(block)):
        yield b"%x\r\n%s\r\n" % (len(block), block)
    yield b"0\r\n\r\n"


def plain(size: int) -> Iterator[bytes]:
    for _ in range(size // 65_536):
        yield b"x" * 65_536


@pytest.mark.parametrize(
    ("keyed", "status"), [(False, 401), (True, 413)], ids=["without a key", "with a key"]
)
@pytest.mark.parametrize(
    ("header", "body"),
    [("transfer-encoding: chunked", chunked), (f"content-length: {HUGE}", plain)],
    ids=["chunked", "announced"],
)
def test_a_huge_body_is_refused_without_being_read(
    gateway: Gateway, keyed: bool, status: int, header: str, body: Callable[[int], Iterator[bytes]]
) -> None:
    with RawClient(gateway) as client:
        client.head(header, key=gateway.key if keyed else None)
        sent = send_while_it_is_taken(client, body(HUGE))
        found, headers, answer = client.answer()

        assert client.rest().endswith(answer)

    assert found == status
    assert headers["connection"] == "close"
    assert json.loads(answer)["error"]["code"] == (None if status == 401 else "request_too_large")
    assert sent < READ_AT_MOST
    assert gateway.rows() == []


def test_each_model_has_its_own_size_limit(gateway: Gateway) -> None:
    sizes = {
        entry["id"]: entry["max_request_bytes"] for entry in gateway.get("/models").json()["data"]
    }
    body = {"messages": [{"role": "user", "content": "say: ok"}]}

    for name in ("running", "mini"):
        model = gateway.models[name]
        bare = len(json.dumps({**body, "model": model, "pad": ""}))
        exact = {**body, "model": model, "pad": "x" * (sizes[model] - bare)}
        over = {**exact, "pad": exact["pad"] + "x"}
        assert len(json.dumps(exact)) == sizes[model]
        assert gateway.post(exact).status_code == 200
        assert gateway.post(over).status_code == 413


def test_a_small_refusal_keeps_the_connection(gateway: Gateway) -> None:
    with RawClient(gateway) as client:
        for _ in range(3):
            client.received = b""
            client.head("content-length: 2", key="svc_live_nonsense")
            client.send(b"{}")
            assert client.answer()[0] == 401


def test_a_body_that_does_not_arrive_times_out(gateway_with: Callable[..., Gateway]) -> None:
    hasty = gateway_with(**IMPATIENT)
    with RawClient(hasty) as client:
        client.head("content-length: 100", key=hasty.key)
        client.send(b'{"model": ')

        status, headers, answer = client.answer()

        assert status == 400
        assert headers["connection"] == "close"
        assert "in time" in json.loads(answer)["error"]["message"]
        assert client.rest()
    assert hasty.chat("say: ok").status_code == 200


def test_a_body_in_many_pieces_is_one_body(gateway: Gateway) -> None:
    body = json.dumps(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: été"}]},
        ensure_ascii=False,
    ).encode()
    with RawClient(gateway) as client:
        client.head("transfer-encoding: chunked", key=gateway.key)
        for byte in body:
            client.send(b"1\r\n%c\r\n" % byte)
        client.send(b"0\r\n\r\n")

        status, _, answer = client.answer()

    assert status == 200
    assert json.loads(answer)["choices"][0]["message"]["content"] == "été"


def test_a_client_that_expects_100_continue_gets_it(gateway: Gateway) -> None:
    body = b'{"model": "acme/typo", "messages": []}'
    with RawClient(gateway) as client:
        client.head(f"content-length: {len(body)}", "expect: 100-continue", key=gateway.key)
        client.read_until(1, b"\r\n\r\n")
        assert client.received.startswith(b"HTTP/1.1 100 ")
        client.received = b""
        client.send(body)
        assert client.answer()[0] == 404

    with RawClient(gateway) as client:
        client.head(f"content-length: {HUGE}", "expect: 100-continue", key=gateway.key)
        assert client.answer()[0] == 413


DEEP = b'{"model": "acme/demo-8b", "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
BAD_JSON: dict[str, bytes] = {
    "UTF-16": '{"model": "acme/demo-8b"}'.encode("utf-16"),
    "too deep": DEEP,
    "a model that is a number": b'{"model": 1, "messages": []}',
}
"""Of each kind one; all are in tests/inference/wire/test_body.py."""


@pytest.mark.parametrize("what", BAD_JSON)
def test_a_body_that_is_not_a_json_object_is_400_and_never_500(gateway: Gateway, what: str) -> None:
    answer = gateway.post(BAD_JSON[what])

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", None)
    assert gateway.rows() == []
