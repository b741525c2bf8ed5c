"""Internal errors of the speech surface have its error shape and leak nothing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.middleware.common import CommonMiddleware

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from speech.voices.clones import rows
from svc_project.asgi import router
from tests.support.builders import speech_rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("threads_end")]


async def asked(path: str, *headers: tuple[bytes, bytes]) -> tuple[int, bytes]:
    """Status and body of ``GET path`` at the speech port, in this process."""
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), *headers],
        "server": ("127.0.0.1", settings.SVC_SPEECH_PORT),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async with asyncio.timeout(60):
        await router(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def organization_key() -> bytes:
    owner: Organization = await sync_to_async(speech_rows.organization)()
    return (await sync_to_async(mint)(owner, Scope.SPEECH, "test")).secret.encode()


def assert_is_our_fault(status: int, content: bytes) -> None:
    error = json.loads(content)["error"]
    assert (status, error["type"]) == (500, "proxy_error")
    assert set(error) == {"message", "type"}
    assert b"secret" not in content


@pytest.mark.parametrize("fault", [RuntimeError("secret"), LookupError("secret")])
async def test_a_fault_in_a_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(organization_id: str) -> None:
        raise fault

    monkeypatch.setattr(rows, "existing", broken)
    authorization = (b"authorization", b"Bearer " + await organization_key())

    assert_is_our_fault(*await asked("/v1/models", authorization))


async def test_a_fault_outside_of_any_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(CommonMiddleware, "process_request", broken)

    assert_is_our_fault(*await asked("/v1/models"))
