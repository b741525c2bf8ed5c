"""A speech request has its row after every internal failure."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from core.errors import ApiError, ClientDisconnected, InternalError
from core.ids import NIL_UUID, request_id
from core.limits.refused_requests import RefusedRequests
from speech.audio.encoders import Encoders
from speech.audio.encoding import AudioFormat
from speech.requests.http_request import SpeechService
from speech.requests.meter import Identity, SpeechMeter
from speech.requests.session import Session
from speech.requests.session_bounds import SessionBounds
from speech.requests.speaking import SpeechCall
from speech.synthesis.script import metered_characters
from speech.synthesis.text_process import TextProcess
from speech.voices.snapshot import VoiceRef
from speech.wire import SpeechRequest, Start
from tests.support.builders.quota_service import caller
from usage.receipts import SpeechReceipt

VOICE = VoiceRef(id="ava", language="en", engine_voice="en-gb", backend=None)
TEXT = "Hello there."


@dataclass
class Fault:
    """The place of an internal failure."""

    at: str = ""

    def strikes(self, place: str) -> None:
        if self.at == place:
            raise RuntimeError(f"broken at {place}")


@dataclass
class Collaborators:
    """Fakes of the ledger, the quota, the reservation and the sink for a request."""

    fault: Fault
    rows: list[SpeechReceipt] = field(default_factory=list)
    began: list[bool | None] = field(default_factory=list)
    day: str = "2026-11-20"
    disconnected: bool = False
    status: int | None = None

    async def admit_durably(self, receipt: SpeechReceipt) -> None:
        self.fault.strikes("admission")

    async def record(self, receipt: SpeechReceipt, *, begun: bool | None = None) -> None:
        self.rows.append(receipt)
        self.began.append(begun)

    async def reserve(self, *_: Any) -> Collaborators:
        return self

    def refund_characters(self) -> None:
        self.fault.strikes("giving back")

    refund = refund_characters

    def admit(self) -> None:
        pass

    def follow(self, _: Any) -> None:
        self.fault.strikes("following")

    def of(self, _: Any) -> Any:
        raise RuntimeError("no engine")

    def add_done_callback(self, _: Any) -> None:
        self.fault.strikes("listening to the drain")

    def remove_done_callback(self, _: Any) -> None:
        self.fault.strikes("ending")


def service(each: Collaborators) -> SpeechService:
    part = cast(Any, each)
    return SpeechService(
        voices=part,
        quota=part,
        engines=part,
        ledger=part,
        refused=RefusedRequests(None),
        texts=TextProcess(),
        encoders=Encoders(2),
    )


@pytest.mark.parametrize("place", ["following", "giving back", "speaking"])
async def test_a_request_with_an_internal_failure_has_a_row(place: str) -> None:
    each = Collaborators(Fault(place))
    request = SpeechRequest(voice="ava", input=TEXT, response_format=AudioFormat.PCM)
    call = SpeechCall(request_id(), 0.0, caller(), request, VOICE, metered_characters(TEXT))

    with pytest.raises(InternalError):
        await service(each).complete(call, cast(Any, each))

    [row] = each.rows
    assert (row.outcome, row.http_status, row.error_type) == ("internal_error", 500, "proxy_error")


class Socket:
    """A WebSocket whose client disconnected."""

    def __init__(self, each: Collaborators) -> None:
        self.draining = each
        self.stopping: asyncio.Future[ApiError] = asyncio.get_running_loop().create_future()

    async def receive_text(self) -> str:
        raise ClientDisconnected

    async def send_text(self, _: str) -> None:
        pass


@pytest.mark.parametrize("place", ["listening to the drain", "ending"])
async def test_a_session_with_an_internal_failure_returns_it_for_its_row(place: str) -> None:
    each = Collaborators(Fault(place))
    meter = SpeechMeter(
        Identity(
            request_id=request_id(),
            organization_id=str(NIL_UUID),
            api_key_id=str(NIL_UUID),
            day=each.day,
            voice=VOICE,
            audio_format=AudioFormat.WAV,
            transport="websocket",
            arrived=0.0,
        )
    )
    session = Session(
        service(each),
        cast(Any, Socket(each)),
        Start("ava", AudioFormat.WAV),
        meter,
        SessionBounds(idle_seconds=10, longest_seconds=0, messages_per_second=0),
    )

    async def check_key() -> Any:
        return caller()

    failure = await session.run(caller(), check_key, "{}")

    assert isinstance(failure, InternalError)
