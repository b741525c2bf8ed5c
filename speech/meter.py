"""The meter of one speech request or session: what was charged, made and handed over.

Its receipts are the rows of the ledger (``usage.receipts.SpeechReceipt``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from speech.audio import SAMPLE_RATE, SAMPLE_WIDTH
from speech.encoding import AudioFormat
from speech.engines import EngineError
from speech.errors import error_type
from speech.snapshot import VoiceRef
from speech.speaking import EngineClock
from svc_project.lib.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    ServerShuttingDown,
)
from svc_project.lib.websocket import ReaderStalled
from usage.models import SpeechOutcome
from usage.receipts import SpeechProgress, SpeechReceipt

SWITCHING_PROTOCOLS = 101
"""What a WebSocket client was sent (RFC 6455, section 4.2.2)."""

_OUTCOMES: dict[type[ApiError], SpeechOutcome] = {
    ClientDisconnected: SpeechOutcome.CLIENT_DISCONNECTED,
    ReaderStalled: SpeechOutcome.CLIENT_DISCONNECTED,
    ServerShuttingDown: SpeechOutcome.INTERRUPTED,
    InternalError: SpeechOutcome.INTERNAL_ERROR,
}
_CALLERS_FAULT = range(400, 500)


def outcome_of(failure: ApiError | None) -> SpeechOutcome:
    """The ledger's name for how it ended; of an engine's failure, what the engine calls it.

    A session that the gateway ended because its caller broke a rule, reached a limit or said
    nothing is a ``client_error``; its close code says which. One whose client left, or reads
    nothing any more, is ``client_disconnected``.
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
    """What is stamped on a row at admission. ``arrived`` is on the ``perf_counter`` clock."""

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
    """Follows one request; ``characters`` are those charged now, ``pcm_bytes`` the sound handed over."""

    identity: Identity
    characters: int = 0
    sentences: int = 0
    pcm_bytes: int = 0
    clock: EngineClock = field(default_factory=EngineClock)
    noted_at: float = 0.0

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
        """Since the request arrived; never less than ``upstream_ms`` read before."""
        return int((time.perf_counter() - self.identity.arrived) * 1000)

    def progress(self, every_seconds: float = 0.0) -> SpeechProgress | None:
        """The figures so far, for the journal, when the last ones were asked for long enough ago."""
        now = time.perf_counter()
        if now - self.noted_at < every_seconds:
            return None
        self.noted_at = now
        return SpeechProgress(
            self.identity.request_id,
            self.characters,
            self.sentences,
            self.audio_ms,
            self.upstream_ms,
        )

    def admitted(self) -> SpeechReceipt:
        """The row as it is if the gateway dies now."""
        return self._receipt(SpeechOutcome.INTERRUPTED, 500, error_type(InternalError()))

    def receipt(
        self, failure: ApiError | None, http_status: int, close_code: int | None = None
    ) -> SpeechReceipt:
        """The row of the request as it ended; ``http_status`` is what the client was sent.

        ``close_code`` is what a session that failed is closed with, None where the client left.
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
