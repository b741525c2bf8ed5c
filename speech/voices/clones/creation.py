"""Creates a clone: checks the body, measures the clip, stores both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar, Final, Protocol

import msgspec
from django.conf import settings

from accounts.keys.consumer import KeyConsumer
from accounts.keys.principal import Principal
from accounts.models import Scope
from core.database.threads import WRITE_SECONDS, threads
from core.errors import ApiError
from core.sharing.fair_queue import FairPool, FairQueue
from core.sharing.places import clones
from speech.audio.speaker import analyse
from speech.audio.wav import Clip, canonical_wav
from speech.engines import Engine, EngineError, EngineFull, EngineTimeout, Utterance
from speech.engines.espeak.profile import CloneProfile, calibrate
from speech.errors import RETRY_SOON, SpeechFailed, SpeechFull, SpeechTimedOut, speech_error_body
from speech.models import Language, VoiceClone
from speech.voices.clones import rows
from speech.voices.clones.clips import cipher
from speech.voices.clones.mixer import mixer
from speech.voices.clones.rows import NewClone
from speech.voices.clones.wire import LARGEST_BODY, CloneObject, CloneRequest, read_request
from speech.voices.voices import CLONE_BASE_VOICE, Voices

log = logging.getLogger(__name__)

Attempt = Callable[[Principal], Awaitable[None]]
"""Counts one creation against the account's hourly limit. Raises ``QuotaExceeded``."""


class Refusals(Protocol):
    """The organization's limit of refused requests (``speech.requests``)."""

    def check_refused(self, principal: Principal) -> None: ...

    def count_refused(self, principal: Principal, error: ApiError, body_bytes: int = 0) -> None: ...


_ANALYSES: Final = 2
_ANALYSIS_WAIT_SECONDS: Final = 120.0
_SPEAK_SECONDS: Final = 20.0


class CloneCreation:
    """Creates clones with ``engine``, the embedded one. One per process, on one event loop."""

    def __init__(
        self, voices: Voices, engine: Engine, attempt: Attempt, refusals: Refusals
    ) -> None:
        self._voices = voices
        self._engine = engine
        self._attempt = attempt
        self._refusals = refusals
        self._reading = FairPool("clone-bodies")
        self._analyses = FairQueue(
            _ANALYSES, settings.SVC_MAX_CLONE_CREATIONS, _ANALYSIS_WAIT_SECONDS
        )

    def check_refused(self, principal: Principal) -> None:
        """Raise ``QuotaExceeded`` when too many of the organization's requests were refused."""
        self._refusals.check_refused(principal)

    async def create(self, body: bytes, principal: Principal) -> CloneObject:
        """Create a clone. Everything is stored when this returns.

        Raises ``InvalidField``, ``NameTaken``, ``TooManyClones``, ``QuotaExceeded``; for a failure
        of the engine ``SpeechFailed``, ``SpeechTimedOut`` or ``SpeechFull``; and
        ``ServerOverloaded`` when too many creations waited for too long.
        """
        self.check_refused(principal)
        size = len(body)
        try:
            reading = partial(read_request, body)
            request = await self._reading.run(principal.organization_id, reading)
            del body, reading
            return await self._create(request, principal)
        except ApiError as error:
            self._refusals.count_refused(principal, error, size)
            raise

    async def _create(self, request: CloneRequest, principal: Principal) -> CloneObject:
        reserved = self._reserved_names(principal.plan)
        look = partial(rows.require_room, principal.organization_id, request.name_key, reserved)
        # Checked before the wait and again before the costly work. Neither check decides: the
        # database does, when the clone is inserted.
        await threads.run(look)
        await self._analyses.acquire(principal.organization_id)
        try:
            await threads.run(look)
            await self._attempt(principal)
            profile = await self._measured(request.clip)
        finally:
            self._analyses.release(principal.organization_id)
        new = await asyncio.to_thread(_new_clone, request, profile, principal)
        clone = await threads.run(partial(rows.add, new, reserved), WRITE_SECONDS)
        mixer.nudge()
        return _served(clone)

    def _reserved_names(self, plan: str) -> frozenset[str]:
        return frozenset(voice.name_key for voice in self._voices.snapshot.visible_to(plan))

    async def _measured(self, clip: Clip) -> CloneProfile:
        loop = asyncio.get_running_loop()

        def speak(text: str, profile: CloneProfile) -> bytes:
            spoken = asyncio.run_coroutine_threadsafe(self._spoken(text, profile), loop)
            try:
                return spoken.result(_SPEAK_SECONDS)
            finally:
                spoken.cancel()

        def measure() -> CloneProfile:
            return calibrate(analyse(clip.samples, clip.rate), speak)

        try:
            return await asyncio.to_thread(measure)
        except EngineFull:
            raise SpeechFull from None
        except (EngineTimeout, TimeoutError):
            raise SpeechTimedOut from None
        except EngineError as error:
            log.error("a clone could not be measured: %s", error)
            raise SpeechFailed from None

    async def _spoken(self, text: str, profile: CloneProfile) -> bytes:
        utterance = Utterance(text, Language.ENGLISH.value, CLONE_BASE_VOICE, profile=profile)
        return b"".join([piece async for piece in self._engine.speak(utterance)])


def _new_clone(request: CloneRequest, profile: CloneProfile, principal: Principal) -> NewClone:
    figures: dict[str, Any] = msgspec.json.decode(profile.to_json())
    return NewClone(
        organization_id=principal.organization_id,
        api_key_id=principal.api_key_id,
        name=request.name,
        name_key=request.name_key,
        reference_seconds=round(request.clip.seconds, 3),
        profile=figures,
        sealed=cipher().seal(canonical_wav(request.clip)),
    )


def _served(clone: VoiceClone) -> CloneObject:
    return CloneObject(
        id=clone.pk,
        object="voice",
        name=clone.name,
        created=int(clone.created_at.timestamp()),
        owned_by="user",
        reference_seconds=clone.reference_seconds,
    )


class CloneCreationConsumer(KeyConsumer):
    """Authenticates before it reads the body. ``creation`` gives the process's ``CloneCreation``."""

    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS
    scopes = frozenset({Scope.SPEECH})
    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "voices"
    overload_headers = RETRY_SOON

    def __init__(self, creation: Callable[[], CloneCreation]) -> None:
        super().__init__()
        self._creation = creation

    async def answer_to(self, principal: Principal) -> None:
        creation = self._creation()
        creation.check_refused(principal)
        # Passed without a local name, so that the body can be freed while the voice is measured.
        clone = await creation.create(await self._arrived_body(), principal)
        await self.respond(201, msgspec.json.encode(clone))

    async def _arrived_body(self) -> bytes:
        """Read the whole body, then take a place among the running creations."""
        body = await self.read_body(LARGEST_BODY)
        self.hold(clones)
        return body

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)
