"""Requests of any client leave only a few lines in the log, however many there are."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import httpx2
import pytest

from core.monitoring import logs
from tests.support.clients.raw_client import RawClient
from tests.support.gateways import IMPATIENT
from tests.support.live import NO_TLS, Gateway
from tests.support.until import until

TIMES = 30
REFUSED = {
    "a head": b"GET /v1/models HTTP/1.1\r\nno field\r\n",
    "a body": b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\n"
    b"authorization: Bearer KEY\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n",
}
"""Each ends in the answer of the server, not of the application."""


@pytest.mark.long
def test_refused_requests_cannot_fill_the_log(start_gateway: Callable[..., Gateway]) -> None:
    # One of its own: other tests' refused requests would count in the same minute.
    gateway = start_gateway()
    with httpx2.Client(verify=NO_TLS, timeout=60) as client:
        client.get(f"{gateway.url}/console/login")
        fields = "&".join(f"f{number}=1" for number in range(1100))
        for _ in range(TIMES):
            forged = client.post(f"{gateway.url}/console/login", data={"username": "a"})
            # More fields than Django takes (DATA_UPLOAD_MAX_NUMBER_FIELDS).
            crowded = client.post(
                f"{gateway.url}/console/login",
                content=fields,
                headers={"content-type": "application/x-www-form-urlencoded"},
            )
            with RawClient(gateway) as raw:
                raw.send(b"NOT HTTP\r\n\r\n")
                raw.rest()
    written = gateway.command.log.read_text()

    assert (forged.status_code, crowded.status_code) == (403, 400)
    assert 1 <= written.count("Forbidden (CSRF") <= logs.MOST_A_MINUTE
    assert written.count("Invalid HTTP request received") <= logs.MOST_A_MINUTE
    assert 1 <= written.count("TooManyFieldsSent") <= logs.MOST_A_MINUTE
    assert "Traceback" not in written


def is_closed(client: RawClient) -> bool:
    try:
        client.send(b"a")
    except ConnectionError:
        return True
    return False


def test_nothing_is_written_behind_the_last_answer(gateway_with: Callable[..., Gateway]) -> None:
    """The time for a head ends, and a body is asked for, while the rest of the bytes is dropped."""
    gateway = gateway_with(**IMPATIENT)
    for sent in REFUSED.values():
        with RawClient(gateway) as client:
            client.send(sent.replace(b"KEY", gateway.key.encode()))
            received = client.rest()
            until(partial(is_closed, client))
        assert received.startswith(b"HTTP/1.1 400 ")
        assert received.count(b"HTTP/1.1") == 1

    assert "Traceback" not in gateway.command.log.read_text()


def record(name: str, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "", 0, text, values, None)


def test_dropped_lines_are_counted_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("core.monitoring.logs.time.monotonic", lambda: now)
    few = logs.LimitRepeatedLines()
    written = [few.filter(record("django.request", "%s: %s", "a", n)) for n in range(25)]
    other = few.filter(record("django.request", "another", 1))
    pages = [
        few.filter(record("svc_project.gate.page_server", "%s: %s", "a", n)) for n in range(25)
    ]
    ours = [few.filter(record("usage.ledger.ledger", "%s", n)) for n in range(25)]
    now += 61

    first = record("django.request", "%s: %s", "a", "b")
    assert few.filter(first)
    assert written == [True] * 10 + [False] * 15
    assert other
    assert pages == written
    assert all(ours)
    assert first.getMessage() == "a: b (and 15 more like it before)"
