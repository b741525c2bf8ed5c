"""A speech request has its row after every internal failure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from core.errors import InternalError
from core.ids import request_id
from speech.audio.encoding import AudioFormat
from speech.requests.speaking import SpeechCall
from speech.synthesis.script import metered_characters
from speech.wire import SpeechRequest
from tests.support.builders.quota_service import caller
from tests.support.speech.sessions import VOICE, Collaborators, Socket, service, session

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


@pytest.mark.parametrize("place", ["listening to the drain", "ending"])
async def test_a_session_with_an_internal_failure_returns_it_for_its_row(place: str) -> None:
    each, socket = Collaborators(place), Socket(leaves=True)
    socket.draining = each
    _, _, running = session(service(each), socket)

    assert isinstance(await running, InternalError)
