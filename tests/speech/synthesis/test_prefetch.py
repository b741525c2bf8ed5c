"""Prefetched sentences of a clone that is deleted before a slow client reads them."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

from core.asgi.websocket import SocketConsumer
from speech.audio.encoders import Encoders
from speech.audio.encoding import AudioFormat
from speech.errors import UnknownVoice
from speech.requests.http_request import SpeechService
from speech.requests.meter import Identity, SpeechMeter
from speech.requests.session import Session
from speech.requests.session_bounds import SessionBounds
from speech.synthesis.text_process import TextProcess
from speech.voices.snapshot import CloneRef, VoiceRef
from speech.wire import Start
from tests.speech.synthesis.test_speaking import Echo, voice

CLONE = voice(id="voice_1", clone=CloneRef("voice_1", "organization", None))


class Shelf:
    """The voices: one clone, until it is deleted."""

    def __init__(self) -> None:
        self.deleted = False

    async def resolve(self, voice_id: str, principal: Any) -> VoiceRef:
        if self.deleted:
            raise UnknownVoice
        return CLONE


class Quota:
    def __init__(self) -> None:
        self.charged = self.refunded = 0
        self.charged_twice = asyncio.Event()

    async def charge(self, principal: Any, characters: int, day: str) -> Any:
        self.charged += 1
        if self.charged == 2:
            self.charged_twice.set()
        return SimpleNamespace(refund_characters=self._refund)

    def _refund(self) -> None:
        self.refunded += 1


class SlowSocket:
    """A client that reads its first frame only when ``reads`` is set."""

    def __init__(self, texts: list[dict[str, str]]) -> None:
        self.frames: list[bytes] = []
        self.reads = asyncio.Event()
        self.is_sent_one = asyncio.Event()
        self.draining: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.stopping: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._texts = [json.dumps(text) for text in texts]

    async def receive_text(self) -> str:
        if not self._texts:
            await asyncio.Event().wait()
        return self._texts.pop(0)

    async def send_text(self, text: str) -> None:
        pass

    async def send_bytes(self, frame: bytes) -> None:
        self.frames.append(frame)
        self.is_sent_one.set()
        await self.reads.wait()


async def test_prefetched_sentences_of_a_deleted_clone_are_not_sent() -> None:
    shelf, quota, engine = Shelf(), Quota(), Echo()
    text = "One sentence is here. Two sentences are here. Three of them are here."
    socket = SlowSocket([{"type": "text", "text": text}, {"type": "done"}])
    service = SimpleNamespace(
        texts=TextProcess(),
        encoders=Encoders(2),
        voices=shelf,
        quota=quota,
        engines=SimpleNamespace(of=lambda backend: engine),
    )
    service.report_progress = lambda meter: None
    identity = Identity(
        request_id="req_1",
        organization_id="organization",
        api_key_id="key",
        day="2026-11-20",
        voice=CLONE,
        audio_format=AudioFormat.WAV,
        transport="websocket",
        arrived=0.0,
    )
    session = Session(
        cast("SpeechService", service),
        cast("SocketConsumer", socket),
        Start(voice="voice_1", response_format=AudioFormat.WAV),
        meter := SpeechMeter(identity),
        SessionBounds(idle_seconds=30, longest_seconds=60, messages_per_second=100),
    )

    async def check_key() -> Any:
        return SimpleNamespace(organization_id="organization")

    principal: Any = SimpleNamespace(organization_id="organization")
    running = asyncio.create_task(session.run(principal, check_key, "{}"))
    async with asyncio.timeout(60):
        await quota.charged_twice.wait()
        await socket.is_sent_one.wait()
    shelf.deleted = True
    socket.reads.set()
    failure = await running

    assert isinstance(failure, UnknownVoice)
    assert len(socket.frames) == 1
    assert (meter.sentences, meter.characters) == (1, len("One sentence is here. "))
    assert quota.refunded == quota.charged - 1
