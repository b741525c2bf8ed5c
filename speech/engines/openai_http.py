"""Speech servers that are spoken to by the OpenAI-compatible audio-speech convention.

``HttpEngine`` is one backend: vLLM-Omni, Kokoro-FastAPI, Speaches, LocalAI, a hosted service. How
each is described, and what its failures become: docs/operate/speech-backends.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator

import aiohttp
from django.conf import settings

from speech.engines import (
    Engine,
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineUnavailable,
    Utterance,
)
from speech.engines.backend_calls import BackendCalls, Patience, RequestRefused
from speech.engines.clone_uploads import CloneClips, Uploads
from speech.engines.delivered import Delivery
from speech.engines.hearing import Hearing
from speech.engines.speech_request import (
    inline_speaker,
    preset_speaker,
    speech_request,
    uploaded_speaker,
)
from speech.snapshot import BackendRef
from svc_project.lib.capacity import Slots
from svc_project.lib.errors import ServerOverloaded

__all__ = ["CloneClips", "HttpEngine"]

log = logging.getLogger(__name__)

_RATE_HEADERS = ("X-Sample-Rate", "X-Audio-Sample-Rate")
"""Where servers say the rate of raw samples; Piper's do, whose voices have 16 000 or 22 050."""

_UNKNOWN_VOICE = (400, 404)
"""How servers say that they do not know an uploaded voice."""


class HttpEngine(Engine):
    """One speech backend. ``pitch`` of an utterance is not sent: servers have no field for it.

    At most ``max_concurrency`` utterances are with the backend; more wait shortly, in turns by
    organization, then ``EngineFull``. One clause or sentence is one request.
    """

    def __init__(self, backend: BackendRef, clips: CloneClips) -> None:
        self._backend = backend
        self._clips = clips
        self._calls = BackendCalls()
        self._uploads = Uploads(clips, self._calls)
        self._closed = False
        self._slots = Slots(
            backend.max_concurrency,
            settings.SVC_BACKEND_QUEUE_LENGTH,
            settings.SVC_BACKEND_QUEUE_SECONDS,
        )

    @property
    def inflight(self) -> int:
        """Utterances that are with the backend now."""
        return self._slots.inflight

    @property
    def waiting(self) -> int:
        """Utterances that wait for their turn."""
        return self._slots.waiting

    def describe(self, backend: BackendRef) -> None:
        """Go by a changed description from the next utterance on; running ones go on."""
        self._backend = backend
        self._slots.limit = backend.max_concurrency

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. Closing the generator closes the connection and frees the slot."""
        await self._take_slot(utterance)
        response: aiohttp.ClientResponse | None = None
        try:
            backend = self._backend
            patience = Patience(backend.first_byte_seconds, backend.total_seconds)
            response = await self._ask(backend, utterance, patience)
            hearing = Hearing(_delivery(backend, response), utterance.text, utterance.rate)
            while not hearing.complete and (read := await self._calls.read(response, patience)):
                if pcm := hearing.feed(read):
                    yield pcm
            rest = await asyncio.to_thread(hearing.finish)
            response.release()
            if rest:
                yield rest
        except EngineProtocolError as problem:
            log.warning("speech backend %s: %s", self._backend.name, problem)
            raise
        finally:
            if response is not None:
                response.close()
            self._slots.release()

    async def forget(self, upload_name: str) -> None:
        """Have the backend delete an uploaded clip; one that is not there is a success.

        Raises ``EngineError``: then it must be tried again.
        """
        await self._uploads.forget(self._backend, upload_name)

    async def close(self) -> None:
        """As ``Engine.close``; uploads that run are given a moment to end."""
        self._closed = True
        await self._uploads.close()
        await self._calls.close()

    async def _take_slot(self, utterance: Utterance) -> None:
        try:
            await self._slots.acquire(utterance.organization_id)
        except ServerOverloaded:
            raise EngineFull("The speech server's places and its queue are full.") from None
        if self._closed:
            self._slots.release()
            raise EngineUnavailable("The engine is closed.")

    async def _ask(
        self, backend: BackendRef, utterance: Utterance, patience: Patience
    ) -> aiohttp.ClientResponse:
        clone_id = utterance.clone_id
        if clone_id is None:
            speaker = preset_speaker(backend, utterance)
        elif backend.clone_mode == "inline":
            speaker = inline_speaker(backend, await self._clips.clip(clone_id))
        elif backend.clone_mode == "upload":
            return await self._ask_as_uploaded(backend, utterance, clone_id, patience)
        else:
            raise EngineError("The speech server does not clone.")
        return await self._calls.post(
            backend, speech_request(backend, utterance, speaker), patience
        )

    async def _ask_as_uploaded(
        self, backend: BackendRef, utterance: Utterance, clone_id: str, patience: Patience
    ) -> aiohttp.ClientResponse:
        name = await self._uploads.name(backend, clone_id)
        request = speech_request(backend, utterance, uploaded_speaker(backend, name))
        try:
            return await self._calls.post(backend, request, patience)
        except RequestRefused as refused:
            if refused.status not in _UNKNOWN_VOICE:
                raise
            other = await self._uploads.renewed(backend, clone_id, name)
            if other is None:
                raise
        request = speech_request(backend, utterance, uploaded_speaker(backend, other))
        return await self._calls.post(backend, request, patience)


def _delivery(backend: BackendRef, response: aiohttp.ClientResponse) -> Delivery:
    headers = response.headers
    return Delivery(
        asked=backend.delivery,
        sample_rate=backend.sample_rate,
        content_type=headers.get("Content-Type", ""),
        rate_header=next((headers[name] for name in _RATE_HEADERS if name in headers), ""),
        ends_known="Content-Length" in headers or "Transfer-Encoding" in headers,
    )
