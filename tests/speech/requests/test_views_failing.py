"""Internal errors of the speech surface have its error shape, leak nothing, and have their row."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.middleware.common import CommonMiddleware

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from core.errors import InternalError
from core.ids import request_id
from speech.audio.encoding import AudioFormat
from speech.requests.speaking import SpeechCall
from speech.synthesis.script import metered_characters
from speech.voices.clones import rows
from speech.wire import SpeechRequest
from svc_project.asgi import router
from tests.support.builders import speech_rows
from tests.support.builders.quota_service import caller
from tests.support.speech.sessions import VOICE, Collaborators, Socket, service, session

with_tables = pytest.mark.django_db(transaction=True)


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


@with_tables
@pytest.mark.usefixtures("threads_end")
@pytest.mark.parametrize("fault", [RuntimeError("secret"), LookupError("secret")])
async def test_a_fault_in_a_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(organization_id: str) -> None:
        raise fault

    monkeypatch.setattr(rows, "existing", broken)
    authorization = (b"authorization", b"Bearer " + await organization_key())

    assert_is_our_fault(*await asked("/v1/models", authorization))


@with_tables
@pytest.mark.usefixtures("threads_end")
async def test_a_fault_outside_of_any_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(CommonMiddleware, "process_request", broken)

    assert_is_our_fault(*await asked("/v1/models"))


# -- a speech request has its row after every internal failure

TEXT = "Hello there."


@pytest.mark.parametrize("place", ["following", "giving back", "speaking"])
async def test_a_request_with_an_internal_failure_has_a_row(place: str) -> None:
    each = Collaborators(place)
    request = SpeechRequest(voice="ava", input=TEXT, response_format=AudioFormat.PCM)
    call = SpeechCall(request_id(), 0.0, caller(), request, VOICE, metered_characters(TEXT))

    with pytest.raises(InternalError):
        await service(each).complete(call, cast(Any, each))

    [row] = each.rows
    assert (row.outcome, row.http_status, row.error_type) == ("internal_error", 500, "proxy_error")


async def test_a_session_with_an_internal_failure_returns_it_for_its_row() -> None:
    each, socket = Collaborators(), Socket(leaves=True)
    socket.stopping = cast(Any, "no future")
    _, _, running = session(service(each), socket)

    assert isinstance(await running, InternalError)
