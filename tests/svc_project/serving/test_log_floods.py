"""Requests of any client leave only a few lines in the log, however many there are."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx2
import pytest

from svc_project.lib.monitoring import logs
from tests.support.clients.raw_client import RawClient
from tests.support.live import NO_TLS, Gateway

TIMES = 30


def test_refused_requests_cannot_fill_the_log(start_gateway: Callable[..., Gateway]) -> None:
    # One of its own: other tests' refused requests would count in the same minute.
    gateway = start_gateway()
    with httpx2.Client(verify=NO_TLS, timeout=30) as client:
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


def record(name: str, text: str, *values: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.WARNING, "", 0, text, values, None)


def test_dropped_lines_are_counted_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("svc_project.lib.monitoring.logs.time.monotonic", lambda: now)
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
