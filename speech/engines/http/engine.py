"""The engine for speech servers with the OpenAI-compatible audio-speech convention.

``HttpEngine`` is one backend: vLLM-Omni, Kokoro-FastAPI, Speaches, LocalAI, a hosted service. Their
configuration and failures: docs/operate/speech-backends.md.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from django.conf import settings

from core.backends.ejection import BackendHealth
from core.errors import ServerOverloaded
from core.http_client.response import Response
from core.sharing.fair_queue import FairQueue
from speech.engines import (
    Engine,
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
    SpokenWord,
    Utterance,
)
from speech.engines.http.audio_readers import AudioCheck, Delivery
from speech.engines.http.backend import BackendRef
from speech.engines.http.client import BackendCalls, BackendPost, RequestRefused, Timeouts
from speech.engines.http.clone_uploads import CloneClips, Uploads
from speech.engines.http.word_times import (
    CAPTIONS,
    CAPTIONS_PATH,
    FIELDS,
    HEADER,
    form_of,
    header_words,
)

__all__ = ["CloneClips", "HttpEngine"]

log = logging.getLogger(__name__)

FORMAT_OF_DELIVERY: Final = {"file": "wav", "pcm": "pcm", "sse": "pcm"}
"""The value of ``format_field``."""


def speech_request(
    backend: BackendRef, utterance: Utterance, speaker: dict[str, str], *, is_timed: bool = False
) -> BackendPost:
    """The request for ``utterance``; ``speaker`` are the fields that name the voice; ``is_timed``: the
    times of its words are wanted.

    Only the text and the instructions hold what a client wrote: the operator names the voice.

    The client's speed and instructions replace those of ``extra_fields``, which never replace the
    text, the voice or the model.
    """
    fields: dict[str, Any] = {**backend.extra_fields}
    if backend.format_field:
        fields[backend.format_field] = FORMAT_OF_DELIVERY[backend.delivery]
    if backend.language_field:
        fields[backend.language_field] = utterance.language
    if backend.speed_field and utterance.rate != 1.0:
        fields[backend.speed_field] = utterance.rate
    if backend.instructions_field and utterance.instructions:
        fields[backend.instructions_field] = utterance.instructions
    if is_timed:
        fields.pop("stream_format", None)  # times come with a whole answer
        fields |= FIELDS[backend.word_times]
    fields |= {"model": backend.model, **speaker, backend.text_field: utterance.text}
    body = msgspec.json.encode(fields)
    if is_timed and backend.word_times == CAPTIONS:
        return BackendPost(CAPTIONS_PATH, body, is_beside_v1=True)
    return BackendPost(backend.speech_path, body)


def preset_speaker(backend: BackendRef, utterance: Utterance) -> dict[str, str]:
    """The fields of a built-in voice of the backend."""
    return {backend.voice_field: utterance.engine_voice}


def uploaded_speaker(backend: BackendRef, upload_name: str) -> dict[str, str]:
    """The fields of an uploaded voice."""
    return {backend.voice_field: upload_name}


def inline_speaker(backend: BackendRef, clip: bytes) -> dict[str, str]:
    """The fields of a voice given by its reference clip, a WAV file."""
    prefix = "data:audio/wav;base64," if backend.clone_as_data_url else ""
    return {backend.clone_field: prefix + b64encode(clip).decode("ascii")}


@dataclass(frozen=True, slots=True)
class _Post:
    """An utterance, the backend as it was described when it began, and the timeouts of the answer."""

    backend: BackendRef
    utterance: Utterance
    timeouts: Timeouts
    is_timed: bool

    def request(self, speaker: dict[str, str]) -> BackendPost:
        """The request, with the fields that name the voice."""
        return speech_request(self.backend, self.utterance, speaker, is_timed=self.is_timed)


_RATE_HEADERS = (b"x-sample-rate", b"x-audio-sample-rate")
"""Headers with the rate of raw samples; Piper sends them, whose voices have 16 000 or 22 050."""

_UNKNOWN_VOICE = (400, 404)
"""Statuses by which servers report an unknown uploaded voice."""
_WITHOUT_TIMES: Final = (400, 404, 405, 422)
"""What a server answers that does not know the fields or the path of word times."""


class HttpEngine(Engine):
    """One speech backend. ``pitch`` of an utterance is not sent: servers have no field for it.

    As many utterances are in flight as there are ``slots``, ``max_concurrency`` at first; more wait
    shortly, organizations in turns, then get ``EngineFull``. One clause or sentence is one request.
    """

    def __init__(self, backend: BackendRef, clips: CloneClips) -> None:
        self._backend = backend
        self._clips = clips
        self._calls = BackendCalls()
        self._uploads = Uploads(clips, self._calls)
        self._closed = False
        self.health = BackendHealth()
        self.slots = FairQueue(
            backend.max_concurrency,
            settings.SVC_BACKEND_QUEUE_LENGTH,
            settings.SVC_BACKEND_QUEUE_SECONDS,
            settings.SVC_BACKEND_RESERVED_SHARE,
        )

    @property
    def has_room(self) -> bool:
        """Whether an utterance would not wait for a slot."""
        return self.slots.inflight < self.slots.limit and not self.slots.waiting

    @property
    def inflight(self) -> int:
        """The number of utterances that the backend speaks now."""
        return self.slots.inflight

    @property
    def waiting(self) -> int:
        """The number of utterances that wait for a slot."""
        return self.slots.waiting

    def describe(self, backend: BackendRef) -> None:
        """Use a changed description from the next utterance on, except for the number of slots."""
        self._backend = backend

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. Closing the generator closes the connection and frees the slot."""
        async with aclosing(self.spoken(utterance, is_timed=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece

    async def spoken(
        self, utterance: Utterance, *, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        """As ``Engine.speak``, or if ``is_timed`` as ``Engine.speak_timed``; a server that gives no times
        of a text, as one that is too long for its header, has no words."""
        await self._take_slot(utterance)
        response: Response | None = None
        try:
            backend = self._backend
            is_timed = is_timed and backend.has_word_times  # it may have changed meanwhile
            timeouts = Timeouts(backend.first_byte_seconds, backend.total_seconds)
            post, response = await self._posted(_Post(backend, utterance, timeouts, is_timed))
            check = AudioCheck(_delivery(post, response), utterance.text, utterance.rate)
            times = response.header(HEADER) if post.is_timed else ""
            words = header_words(times, utterance.text)
            while not check.complete and (
                read := await self._calls.read(backend, response, timeouts)
            ):
                if pcm := check.feed(read):
                    # Not before: another server may take over until there is sound.
                    for word in words:
                        yield word
                    words = []
                    yield pcm
            rest = await asyncio.to_thread(check.finish)
            response.release()
            for word in (*words, *check.words):
                yield word
            if rest:
                yield rest
        except (EngineProtocolError, EngineTimeout) as problem:
            log.warning("speech backend %s: %s", self._backend.name, problem)
            raise
        finally:
            if response is not None:
                response.close()
            self.slots.release(utterance.organization_id)

    async def delete_upload(self, upload_name: str) -> None:
        """Delete an uploaded clip on the backend; a missing one counts as success.

        Raises ``EngineError``: retry later.
        """
        await self._uploads.delete_upload(self._backend, upload_name)

    async def close(self) -> None:
        """As ``Engine.close``; running uploads get a few seconds to end."""
        self._closed = True
        await self._uploads.close()
        await self._calls.close()

    async def _take_slot(self, utterance: Utterance) -> None:
        try:
            await self.slots.acquire(utterance.organization_id)
        except ServerOverloaded:
            raise EngineFull("The speech server and its queue are full.") from None
        if self._closed:
            self.slots.release(utterance.organization_id)
            raise EngineUnavailable("The engine is closed.")

    async def _posted(self, post: _Post) -> tuple[_Post, Response]:
        """Return the answer, and the request that it answers.

        A server that fails or refuses when it is asked for word times is asked once more without them.
        Kokoro-FastAPI answers 500 where it has times for only some pieces of a sentence, as for numbers in
        Hindi; vLLM-Omni 400 if it was started without an aligner.
        """
        try:
            return post, await self._post(post)
        except EngineError as error:
            if not post.is_timed or not _may_be_for_times(error):
                raise
            log.warning("speech backend %s: asked again without word times", post.backend.name)
        post = replace(post, is_timed=False)
        return post, await self._post(post)

    async def _post(self, post: _Post) -> Response:
        backend, clone_id = post.backend, post.utterance.clone_id
        if clone_id is None:
            speaker = preset_speaker(backend, post.utterance)
        elif backend.clone_mode == "inline":
            speaker = inline_speaker(backend, await self._clips.clip(clone_id))
        elif backend.clone_mode == "upload":
            return await self._post_as_uploaded(post, clone_id)
        else:
            raise EngineError("The speech server does not support clones.")
        return await self._calls.post(backend, post.request(speaker), post.timeouts)

    async def _post_as_uploaded(self, post: _Post, clone_id: str) -> Response:
        backend = post.backend
        name = await self._uploads.ensure(backend, clone_id)
        request = post.request(uploaded_speaker(backend, name))
        try:
            return await self._calls.post(backend, request, post.timeouts)
        except RequestRefused as refused:
            if refused.status not in _UNKNOWN_VOICE:
                raise
            other = await self._uploads.reupload(backend, clone_id, name)
            if other is None:
                raise
        request = post.request(uploaded_speaker(backend, other))
        return await self._calls.post(backend, request, post.timeouts)


def _may_be_for_times(error: EngineError) -> bool:
    """Whether a server may have failed because it was asked for word times: not a full or an away one."""
    if isinstance(error, RequestRefused):
        return error.status in _WITHOUT_TIMES
    return type(error) is EngineError


def _delivery(post: _Post, response: Response) -> Delivery:
    backend = post.backend
    return Delivery(
        asked=form_of(backend.word_times) if post.is_timed else backend.delivery,
        sample_rate=backend.sample_rate,
        content_type=response.header(b"content-type"),
        rate_header=next(filter(None, map(response.header, _RATE_HEADERS)), ""),
        ends_known=response.has_length,
    )
