"""Internal errors of the speech surface have its error shape, leak nothing, and have their row."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from django.conf import settings
from django.middleware.common import CommonMiddleware

from accounts.keys.keys import mint
from accounts.models import Scope
from core.errors import InternalError
from core.ids import request_id
from speech.audio.encoding import AudioFormat
from speech.requests.speaking import SpeechCall
from speech.synthesis.script import metered_characters
from speech.voices.clones import rows
from speech.wire import SpeechRequest
from tests.support.builders import speech_rows
from tests.support.builders.quota_service import caller
from tests.support.speech.sessions import VOICE, Collaborators, Socket, service, session
from tests.svc_project.test_database_away import asked

with_tables = pytest.mark.django_db(transaction=True)


def assert_is_our_fault(path: str, **headers: str) -> None:
    status, _, content = asked(path, settings.SVC_SPEECH_PORT, **headers)
    error = json.loads(content)["error"]
    assert (status, error["type"]) == (500, "proxy_error")
    assert set(error) == {"message", "type"}
    assert b"secret" not in content


@with_tables
@pytest.mark.usefixtures("threads_end")
@pytest.mark.parametrize("fault", [RuntimeError("secret"), LookupError("secret")])
def test_a_fault_in_a_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def broken(organization_id: str) -> None:
        raise fault

    monkeypatch.setattr(rows, "existing", broken)
    key = mint(speech_rows.organization(), Scope.SPEECH, "test").secret

    assert_is_our_fault("/v1/models", authorization=f"Bearer {key}")


@with_tables
@pytest.mark.usefixtures("threads_end")
def test_a_fault_outside_of_any_view_is_500_in_this_surfaces_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(CommonMiddleware, "process_request", broken)

    assert_is_our_fault("/v1/models")


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
