"""The engines of this process: the embedded ones, and one for each backend that speaks."""

from __future__ import annotations

import asyncio

from speech.engines import Engine
from speech.engines.espeak import Espeak
from speech.engines.kokoro import Kokoro
from speech.engines.openai_http import CloneClips, HttpEngine
from speech.snapshot import BackendRef, VoiceRef


class Engines:
    """Finds who speaks. Belongs to one event loop."""

    def __init__(self, embedded: Espeak, neural: Kokoro, clips: CloneClips) -> None:
        """``embedded`` and ``neural`` need no backend; ``clips`` gives backends the reference clips of the clones that they speak."""
        self.embedded = embedded
        self.neural = neural
        self._clips = clips
        self._by_backend: dict[str, tuple[BackendRef, HttpEngine]] = {}

    async def start(self) -> None:
        """Start the embedded engine's processes ahead of the first request; raises ``EngineError``."""
        await self.embedded.start()

    def of(self, voice: VoiceRef) -> Engine:
        """Who speaks ``voice``: its backend as it is described now, or an embedded engine."""
        if voice.backend is not None:
            return self._http(voice.backend)
        return self.neural if voice.is_neural else self.embedded

    async def forget(self, backend: BackendRef, upload_name: str) -> None:
        """Have ``backend`` delete an uploaded clip. Raises ``EngineError``: try again then."""
        await self._http(backend).forget(upload_name)

    async def close(self) -> None:
        """Close every engine; a failure of one does not keep the others open."""
        engines = [self.embedded, self.neural, *(engine for _, engine in self._by_backend.values())]
        self._by_backend.clear()
        await asyncio.gather(*(engine.close() for engine in engines), return_exceptions=True)

    def _http(self, backend: BackendRef) -> HttpEngine:
        known = self._by_backend.get(backend.id)
        if known is None:
            engine = HttpEngine(backend, self._clips)
        elif known[0] == backend:
            return known[1]
        else:
            engine = known[1]
            engine.describe(backend)
        self._by_backend[backend.id] = (backend, engine)
        return engine
