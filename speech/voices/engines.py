"""The engines of this process: the embedded ones, and one for each speech backend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from django.conf import settings

from core.backends.ejection import BackendHealth, Ejector, Rules
from core.monitoring.metrics import Family
from core.sharing.slots import shared_slots
from speech.engines import Engine
from speech.engines.espeak.engine import Espeak
from speech.engines.http.backend import BackendRef, ServerRef
from speech.engines.http.engine import CloneClips, HttpEngine
from speech.engines.http.failover import Failover, Place, families
from speech.engines.kokoro.engine import Kokoro
from speech.voices.snapshot import VoiceRef


class Engines:
    """Finds the engine of a voice. Belongs to one event loop."""

    def __init__(self, embedded: Espeak, neural: Kokoro, clips: CloneClips) -> None:
        """``clips`` is the store of reference clips for the backends that speak clones."""
        self.embedded = embedded
        self.neural = neural
        self._clips = clips
        self._by_backend: dict[str, tuple[BackendRef, HttpEngine]] = {}
        self._ejector = Ejector(
            Rules(settings.SVC_BACKEND_EJECT_AFTER, settings.SVC_BACKEND_EJECT_SECONDS)
        )

    async def start(self) -> None:
        """Start the embedded engine's workers before the first request. Raises ``EngineError``."""
        await self.embedded.start()

    def of(self, voice: VoiceRef) -> Engine:
        """The engine of ``voice``: its backends as configured now, or an embedded engine."""
        if voice.backend is not None:
            servers = voice.servers or (ServerRef(voice.backend, voice.engine_voice),)
            return Failover([self._place(each) for each in servers], self._ejector)
        return self.neural if voice.is_neural else self.embedded

    def chosen(self, voice: VoiceRef) -> VoiceRef:
        """``voice`` as it is spoken now: by the neural engine where it has one there that can begin at once.

        Chosen for a request or session as a whole, since another engine is another voice.
        """
        return voice.as_neural() if self.neural.is_free else voice

    def families(self) -> Iterator[Family]:
        """The metrics of speech backends."""
        known = sorted(self._by_backend.values(), key=lambda each: each[0].name)
        return families([(backend.name, engine, engine.health) for backend, engine in known])

    async def delete_upload(self, backend: BackendRef, upload_name: str) -> None:
        """Delete an uploaded clip on ``backend``. Raises ``EngineError``: retry later."""
        await self._http(backend).delete_upload(upload_name)

    async def close(self) -> None:
        """Close every engine, even when closing one of them fails."""
        engines = [self.embedded, self.neural, *(engine for _, engine in self._by_backend.values())]
        self._by_backend.clear()
        await asyncio.gather(*(engine.close() for engine in engines), return_exceptions=True)

    def _place(self, server: ServerRef) -> Place:
        backend = server.backend
        engine = self._http(backend)
        return Place(backend.name, backend.id, engine, server.engine_voice, server.weight)

    def _http(self, backend: BackendRef) -> HttpEngine:
        known = self._by_backend.get(backend.id)
        if known is None:
            engine = HttpEngine(backend, self._clips)
        elif known[0] == backend:
            return known[1]
        else:
            engine = known[1]
            if known[0].base_url != backend.base_url:
                # The known health is that of another server.
                self._ejector.readmit(engine.health)
                engine.health = BackendHealth()
            engine.describe(backend)
        shared_slots.divide(backend.id, engine.slots, backend.max_concurrency)
        self._by_backend[backend.id] = (backend, engine)
        return engine
