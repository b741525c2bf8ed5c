"""The meter of one speech request or session: charged characters, sound made and sent.

Its receipts are the rows of the ledger (``usage.receipts.SpeechReceipt``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from core.asgi.websocket import ReaderStalled
from core.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    ServerShuttingDown,
)
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH
from speech.engines import EngineError
from speech.errors import error_type
from speech.synthesis.sentence import EngineClock
from speech.voices.snapshot import VoiceRef
from usage.models import SpeechOutcome
from usage.receipts import SpeechProgress, SpeechReceipt

SWITCHING_PROTOCOLS = 101
"""The HTTP status of a WebSocket session (RFC 6455, section 4.2.2)."""

_OUTCOMES: dict[type[ApiError], SpeechOutcome] = {
    ClientDisconnected: SpeechOutcome.CLIENT_DISCONNECTED,
    ReaderStalled: SpeechOutcome.CLIENT_DISCONNECTED,
    ServerShuttingDown: SpeechOutcome.INTERRUPTED,
    InternalError: SpeechOutcome.INTERNAL_ERROR,
}
_CALLERS_FAULT = range(400, 500)


def outcome_of(failure: ApiError | None) -> SpeechOutcome:
    """The outcome that the ledger stores; for an engine's failure, the engine's own.

    A session that the gateway closed for a broken rule, a limit or idleness is a ``client_error``;
    its close code says which. A client that disconnected or stopped reading is
    ``client_disconnected``.
    """
    if failure is None:
        return SpeechOutcome.SUCCESS
    if isinstance(failure.__cause__, EngineError):
        return SpeechOutcome(failure.__cause__.outcome)
    if (outcome := _OUTCOMES.get(type(failure))) is not None:
        return outcome
    if failure.status in _CALLERS_FAULT:
        return SpeechOutcome.CLIENT_ERROR
    return SpeechOutcome.INTERNAL_ERROR


@dataclass(frozen=True, slots=True)
class Identity:
    """The columns of a row that admission fixes; ``arrived`` is a ``perf_counter`` time."""

    request_id: str
    organization_id: str
    api_key_id: str
    day: str
    voice: VoiceRef
    audio_format: AudioFormat
    transport: str
    arrived: float


@dataclass(slots=True)
class SpeechMeter:
    """Meters one request: ``characters`` charged so far, ``pcm_bytes`` of sound sent."""

    identity: Identity
    characters: int = 0
    sentences: int = 0
    pcm_bytes: int = 0
    clock: EngineClock = field(default_factory=EngineClock)
    reported_at: float = 0.0

    @property
    def audio_ms(self) -> int:
        return round(self.pcm_bytes * 1000 / (SAMPLE_RATE * SAMPLE_WIDTH))

    @property
    def upstream_ms(self) -> int:
        return int(self.clock.total * 1000)

    @property
    def first_upstream_ms(self) -> int:
        """The engine's time until its first sound."""
        return int(self.clock.until_first * 1000)

    @property
    def elapsed_ms(self) -> int:
        """Time since the request arrived; never less than an ``upstream_ms`` read before."""
        return int((time.perf_counter() - self.identity.arrived) * 1000)

    def charge(self, characters: int, sentences: int) -> None:
        """Charge the characters of the whole text; its sentences too, unless they were counted."""
        self.characters = characters
        self.sentences = self.sentences or sentences

    def progress(self, every_seconds: float = 0.0) -> SpeechProgress | None:
        """The counts so far, for the journal; None within ``every_seconds`` of the last ones."""
        now = time.perf_counter()
        if now - self.reported_at < every_seconds:
            return None
        self.reported_at = now
        return SpeechProgress(
            self.identity.request_id,
            self.characters,
            self.sentences,
            self.audio_ms,
            self.upstream_ms,
        )

    def admitted(self) -> SpeechReceipt:
        """The row that is written if the gateway dies before the end."""
        return self._receipt(SpeechOutcome.INTERRUPTED, 500, error_type(InternalError()))

    def receipt(
        self, failure: ApiError | None, http_status: int, close_code: int | None = None
    ) -> SpeechReceipt:
        """The row of the ended request; ``http_status`` is the status that the client got.

        ``close_code`` is that of a failed session; None when the client disconnected.
        """
        named = None if failure is None else error_type(failure)
        return self._receipt(outcome_of(failure), http_status, named, close_code)

    def _receipt(
        self,
        outcome: SpeechOutcome,
        http_status: int,
        named: str | None,
        close_code: int | None = None,
    ) -> SpeechReceipt:
        of = self.identity
        first = self.clock.first_audio
        return SpeechReceipt(
            request_id=of.request_id,
            organization_id=of.organization_id,
            api_key_id=of.api_key_id,
            day=of.day,
            voice=of.voice.id,
            cloned=of.voice.clone is not None,
            engine=of.voice.engine,
            response_format=of.audio_format.value,
            transport=of.transport,
            outcome=outcome.value,
            http_status=http_status,
            error_type=named,
            close_code=close_code,
            characters=self.characters,
            sentences=self.sentences,
            audio_ms=self.audio_ms,
            upstream_ms=self.upstream_ms,
            first_audio_ms=0 if first is None else int((first - of.arrived) * 1000),
            gateway_ms=self.elapsed_ms,
        )
