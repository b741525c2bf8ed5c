"""Builds the speech service of this process from the settings.

Everything here belongs to the event loop that first uses it.
"""

from __future__ import annotations

import logging
import os
from functools import cache, partial

from django.conf import settings

from core.database.threads import threads
from core.limits.buckets import Limiter
from core.limits.redis import open_limiter
from core.limits.refused_requests import RefusedRequests
from speech.audio.encoders import Encoders
from speech.engines import EngineError
from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro import files
from speech.engines.kokoro.engine import BackgroundKokoro, Kokoro
from speech.quota.quota import SpeechQuota
from speech.requests.http_request import SpeechService
from speech.synthesis.text_process import TextProcess
from speech.voices.clones.clips import clips
from speech.voices.clones.creation import CloneCreation
from speech.voices.clones.mixer import mixer
from speech.voices.clones.outbox import outbox
from speech.voices.engines import Engines
from speech.voices.pronunciations.held import pronunciations
from speech.voices.voices import voices
from usage.ledger.ledger import ledger
from usage.queries.speech import characters_of

log = logging.getLogger(__name__)


@cache
def service() -> SpeechService:
    """The speech service of this process."""
    return SpeechService(
        voices=voices,
        pronunciations=pronunciations,
        quota=SpeechQuota(limiter(), _used_before, clones_per_hour=settings.SVC_CLONES_PER_HOUR),
        engines=_engines(),
        ledger=ledger,
        refused=RefusedRequests(settings.SVC_REFUSED_REQUESTS_PER_MINUTE),
        texts=TextProcess(),
        encoders=Encoders(max(2, (os.cpu_count() or 1) // settings.SVC_WORKERS)),
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
    """The creation of clones, which calibrates with the speech service's engine."""
    speech = service()
    return CloneCreation(
        voices, speech.engines.embedded, speech.quota.clone_attempt, refusals=speech
    )


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


def _styles_to_mix() -> frozenset[str]:
    """The voices of which clones are mixed here: none where the neural engine does not speak live."""
    is_live = service().engines.neural.speaks_live
    return voices.snapshot.clone_styles if is_live else frozenset()


async def start() -> None:
    """Start the embedded engine, the deletion of clips on speech servers, and the mixing of clones."""
    engines = service().engines
    outbox.start(engines.delete_upload)
    directory = settings.SVC_NEURAL_DIR
    mixer.start(
        _styles_to_mix,
        lambda: BackgroundKokoro(engines.embedded, directory),
        files.style_file(directory, files.VOICES[0]),
    )
    try:
        await engines.start()
    except EngineError as error:
        # Chat and other speech engines are served all the same; the embedded voice answers 502.
        log.error("the embedded voice does not start: %s", error)


async def close() -> None:
    """Close the engines, processes and connections of the service; its requests have ended."""
    await outbox.stop()
    await mixer.stop()
    await service().texts.close()
    await service().engines.close()
    await limiter().close()
