"""Views while the database is down: 503 with retry-after on both surfaces, and short logs."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from django.conf import settings
from django.db import InterfaceError, OperationalError

from svc_project.asgi import router

FAULTS = [OperationalError("too many clients: secret"), InterfaceError("closed: secret")]


def asked(path: str, port: int, **headers: str) -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of ``GET path``, in this process."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def story() -> None:
        scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [
                (b"host", b"127.0.0.1"),
                *((name.encode(), value.encode()) for name, value in headers.items()),
            ],
            "server": ("127.0.0.1", port),
        }
        async with asyncio.timeout(60):
            await router(scope, receive, send)

    asyncio.run(story())
    head = {name.lower(): value for name, value in sent[0]["headers"]}
    return sent[0]["status"], head, sent[1]["body"]


def fails(fault: Exception) -> Any:
    def away(*_: Any, **__: Any) -> None:
        raise fault

    return away


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("on_speech", [False, True])
def test_a_view_sends_retry_after(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
    on_speech: bool,
) -> None:
    monkeypatch.setattr("accounts.keys.keyring.Keyring.authenticate_sync", fails(fault))
    port = settings.SVC_SPEECH_PORT if on_speech else 1
    with caplog.at_level(logging.ERROR):
        status, headers, body = asked("/v1/models", port, authorization="Bearer x")

    assert status == 503
    assert int(headers[b"retry-after"]) >= 1
    assert b"The database does not answer" in body
    assert (b"server_overloaded" in body) is not on_speech
    assert "secret" not in caplog.text + body.decode()
    assert "Traceback" not in caplog.text
    assert caplog.text.count("the database does not answer") == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_sends_retry_after_too(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    monkeypatch.setattr(
        "django.contrib.sessions.backends.db.SessionStore._get_session_from_db", fails(fault)
    )
    name = settings.SESSION_COOKIE_NAME
    status, headers, body = asked("/console/usage", 1, cookie=f"{name}={'a' * 32}")

    assert status == 503
    assert int(headers[b"retry-after"]) >= 1
    assert b"secret" not in body
