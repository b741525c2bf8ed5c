"""Requests and sessions of speech inside this process, on fakes of what is around them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, cast

from accounts.keys.principal import Principal
from core.errors import ApiError, ClientDisconnected
from core.ids import request_id
from core.limits.refused_requests import RefusedRequests
from speech.audio.encoders import Encoders
from speech.audio.encoding import AudioFormat
from speech.requests.http_request import SpeechService
from speech.requests.meter import Identity, SpeechMeter
from speech.requests.session import Session
from speech.requests.session_bounds import SessionBounds
from speech.synthesis.text_process import TextProcess
from speech.voices.pronunciations.held import pronunciations
from speech.voices.snapshot import VoiceRef
from speech.wire import Start
from tests.support.builders.quota_service import caller
from usage.receipts import SpeechReceipt

VOICE = VoiceRef(id="ava", language="en", engine_voice="en-gb", backend=None)
DAY = "2026-11-20"


@dataclass
class Collaborators:
    """Fakes of the ledger, the voices, the quota, the reservation and the sink of a request.

    ``fault`` is the place of an internal failure.
    """

    fault: str = ""
    rows: list[SpeechReceipt] = field(default_factory=list)
    day: str = DAY
    disconnected: bool = False
    status: int | None = None

    def _strikes(self, place: str) -> None:
        if self.fault == place:
            raise RuntimeError(f"broken at {place}")

    async def admit_durably(self, receipt: SpeechReceipt) -> None:
        self._strikes("admission")

    async def record(self, receipt: SpeechReceipt, *, begun: bool | None = None) -> None:
        self.rows.append(receipt)

    def progress(self, _: Any) -> None:
        pass

    async def reserve(self, *_: Any) -> Any:
        return self

    def refund_characters(self) -> None:
        self._strikes("giving back")

    refund = refund_characters

    def admit(self) -> None:
        pass

    def follow(self, _: Any) -> None:
        self._strikes("following")

    async def resolve(self, *_: Any) -> Any:
        return VOICE

    def of(self, _: Any) -> Any:
        raise RuntimeError("no engine")


def service(each: Any, **parts: Any) -> SpeechService:
    """A service of ``each``, but for ``parts``."""
    fakes = dict.fromkeys(("voices", "quota", "engines", "ledger"), each)
    real = {"refused": RefusedRequests(None), "texts": TextProcess(), "encoders": Encoders(2)}
    real["pronunciations"] = pronunciations
    return SpeechService(**{**fakes, **real, **parts})


class Socket:
    """A client that sends ``messages`` and then waits, or disconnects if it ``leaves``.

    It reads further frames only while ``reads`` is set.
    """

    def __init__(self, *messages: dict[str, str], leaves: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.draining: Any = loop.create_future()
        self.stopping: asyncio.Future[ApiError] = loop.create_future()
        self.frames: list[bytes] = []
        self.is_sent_one = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._leaves = leaves
        self._messages = [json.dumps(message) for message in messages]

    async def receive_text(self) -> str:
        if not self._messages:
            if self._leaves:
                raise ClientDisconnected
            await asyncio.Event().wait()
        return self._messages.pop(0)

    async def send_text(self, _: str) -> None:
        pass

    async def send_bytes(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.is_sent_one.set()
        await self.reads.wait()


def session(
    speech: SpeechService,
    socket: Socket,
    principal: Principal | None = None,
    voice: VoiceRef = VOICE,
    **start_fields: Any,
) -> tuple[Session, SpeechMeter, asyncio.Task[ApiError | None]]:
    """A session of ``DAY`` that runs, with ``start_fields`` in ``start``; its task returns its failure."""
    owner = principal or caller()
    meter = SpeechMeter(
        Identity(
            request_id=request_id(),
            organization_id=owner.organization_id,
            api_key_id=owner.api_key_id,
            day=DAY,
            voice=voice,
            audio_format=AudioFormat.WAV,
            transport="websocket",
            arrived=0.0,
        )
    )
    start, bounds = Start(voice.id, AudioFormat.WAV, **start_fields), SessionBounds(60, 0, 0)
    opened = Session(speech, cast(Any, socket), start, meter, bounds)

    async def check_key() -> Principal:
        return owner

    return opened, meter, asyncio.create_task(opened.run(owner, check_key, "{}"))
