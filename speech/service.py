"""The speech service of this process, put together from the settings.

Everything here belongs to the event loop that first uses it.
"""

from __future__ import annotations

from functools import cache, partial

from django.conf import settings

from speech.clones.creation import CloneCreation
from speech.clones.store import clips
from speech.database import threads
from speech.engines.espeak import Espeak
from speech.engines.kokoro import Kokoro
from speech.engines.registry import Engines
from speech.quota import SpeechQuota
from speech.synthesis import SpeechService
from speech.voices import voices
from svc_project.lib.fair_thread import FairThread
from svc_project.lib.ratelimits import Limiter
from svc_project.lib.ratelimits_redis import open_limiter
from svc_project.lib.refused_requests import RefusedRequests
from usage.ledger import ledger
from usage.speech import characters_of


@cache
def service() -> SpeechService:
    """The one speech service."""
    return SpeechService(
        voices=voices,
        quota=SpeechQuota(limiter(), _used_before, clones_per_hour=settings.SVC_CLONES_PER_HOUR),
        engines=_engines(),
        ledger=ledger,
        refused=RefusedRequests(settings.SVC_REFUSED_REQUESTS_PER_MINUTE),
        thread=FairThread("speech-texts"),
    )


def _engines() -> Engines:
    espeak = Espeak(workers=settings.SVC_SPEECH_WORKERS)
    neural = Kokoro(
        espeak,
        settings.SVC_NEURAL_DIR,
        workers=settings.SVC_NEURAL_WORKERS,
        threads=settings.SVC_NEURAL_THREADS,
    )
    return Engines(espeak, neural, clips)


@cache
def creation() -> CloneCreation:
    """The one maker of clones; it measures with the engine that speaks."""
    speech = service()
    return CloneCreation(voices, speech.engines.embedded, speech.quota.clone_attempt)


@cache
def limiter() -> Limiter:
    """The store of this surface's limits."""
    return open_limiter(
        settings.REDIS_URL,
        workers=settings.SVC_WORKERS,
        prefix="svc:speech:",
        timeout_seconds=settings.SVC_LIMIT_STORE_SECONDS,
    )


async def _used_before(organization_id: str, day: str) -> int:
    return await threads.run(partial(characters_of, organization_id, day))
