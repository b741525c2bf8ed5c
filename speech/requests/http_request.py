"""The steps of one ``POST /v1/audio/speech``: check, admit, speak, encode, record.

``prepare`` makes every check that comes before limits are reserved; ``complete`` does the rest, and
``speech.requests.speaking`` the speaking.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from accounts.keys.principal import Principal
from core.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    InvalidField,
    ServerOverloaded,
)
from core.limits.refused_requests import RefusedRequests
from core.monitoring.logs import log_unexpected
from speech.audio.encoders import Encoders
from speech.errors import SpeechFull
from speech.quota.quota import Reserved, SpeechQuota, refused_too_often
from speech.requests import metrics
from speech.requests.meter import Identity, SpeechMeter
from speech.requests.speaking import Resources, Sink, SpeechCall, Synthesis
from speech.synthesis.script import LONG_READING, Script, metered_characters, read_script
from speech.synthesis.text_process import TextProcess
from speech.text.tags import TagError
from speech.voices.engines import Engines
from speech.voices.pronunciations.held import Pronunciations
from speech.voices.snapshot import VoiceRef
from speech.voices.voices import Voices
from speech.wire import SpeechRequest
from usage import metered
from usage.ledger.ledger import Ledger

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SpeechService:
    """Handles speech requests with the voices, limits, engines and ledger of the process."""

    voices: Voices
    pronunciations: Pronunciations
    quota: SpeechQuota
    engines: Engines
    ledger: Ledger
    refused: RefusedRequests
    texts: TextProcess
    encoders: Encoders

    async def prepare(
        self, body: bytes, principal: Principal, request_id: str, arrived: float
    ) -> SpeechCall:
        """Check ``body`` and resolve the voice. Raises the ``ApiError`` of the first failed check;
        ``QuotaExceeded``, before the body is parsed, when too many requests were refused."""
        self.check_refused(principal)
        try:
            request = SpeechRequest.from_body(body)
            voice = self.engines.chosen(await self.voices.resolve(request.voice, principal))
            if request.timestamps is not None:
                require_word_times(voice)
            with input_named():
                characters = metered_characters(request.input)
            lexicon = await self.pronunciations.of(voice, principal.organization_id)
        except ApiError as error:
            self.count_refused(principal, error, len(body))
            raise
        return SpeechCall(request_id, arrived, principal, request, voice, characters, lexicon)

    def check_refused(self, principal: Principal) -> None:
        """Raise ``QuotaExceeded`` when too many requests of the key or organization were refused."""
        limit = principal.speech_limits.requests_per_minute
        organization_id, key_id = principal.organization_id, principal.api_key_id
        if (too_many := self.refused.too_many(organization_id, key_id, limit)) is not None:
            raise refused_too_often(too_many)

    def count_refused(self, principal: Principal, error: ApiError, body_bytes: int = 0) -> None:
        """Count a refused request or session, if ``error`` is the client's fault."""
        limit = principal.speech_limits.requests_per_minute
        self.refused.count(
            principal.organization_id, principal.api_key_id, limit, error, body_bytes
        )

    def count_unspoken(self, principal: Principal, units: int) -> None:
        """Count ``units`` refused requests for texts of a session that were not spoken."""
        limit = principal.speech_limits.requests_per_minute
        self.refused.charge_units(principal.organization_id, principal.api_key_id, limit, units)

    async def complete(self, call: SpeechCall, sink: Sink) -> None:
        """Admit, speak and record the request, then send the last bytes.

        Raises ``QuotaExceeded`` or ``ServerOverloaded``, without a row, when it is not admitted,
        and the ``ApiError`` of a failure.
        """
        reserved = await self.quota.reserve(call.principal, call.characters)
        meter = SpeechMeter(_identity(call, reserved))
        try:
            script = await self._script(call)
            sink.admit()
            await self.ledger.admit_durably(meter.admitted())
        except BaseException as error:
            reserved.refund()
            if isinstance(error, ApiError):
                self.count_refused(call.principal, error)
            raise
        resources = Resources(self.engines, self.texts, self.encoders)
        synthesis = Synthesis(call, script, meter, resources, self.report_progress)
        failure = await self._run(call, synthesis, sink)
        try:
            _charge_or_refund(failure, meter, script, reserved)
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            failure = failure or InternalError()
        receipt = meter.receipt(failure, metered.http_status(failure, sink.status))
        metrics.observe(receipt)
        failure = await metered.record(self.ledger, receipt, failure, begun=sink.status is not None)
        if failure is not None:
            self.count_refused(call.principal, failure)
            raise failure
        await sink.finish(synthesis.last)

    async def _script(self, call: SpeechCall) -> Script:
        """Parse the text into sentences. It is costly, so limits are reserved before."""
        text = call.request.input
        with input_named():
            if len(text) <= LONG_READING:
                return read_script(text)
            return await self.texts.read_script(text, call.principal.organization_id)

    async def _run(self, call: SpeechCall, synthesis: Synthesis, sink: Sink) -> ApiError | None:
        """Speak. Never raises, because a row must be written."""
        try:
            sink.follow(synthesis)
            failure = await synthesis.run(sink)
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            failure = InternalError()
        if failure is None and sink.disconnected:
            failure = ClientDisconnected()
        return failure

    def report_progress(self, meter: SpeechMeter, every_seconds: float = 0.0) -> None:
        """Write the progress of a request to the journal, at most once in ``every_seconds``."""
        if (progress := meter.progress(every_seconds)) is not None:
            self.ledger.progress(progress)


def require_word_times(voice: VoiceRef) -> None:
    """Raise ``InvalidField`` if the engine of ``voice`` does not know when it speaks a word."""
    if not voice.has_word_times:
        raise InvalidField(
            "'timestamps' is not available with this voice: it is spoken by a speech server, which "
            "gives no times of words. Leave it out, or choose an embedded voice.",
            param="timestamps",
        )


@contextmanager
def input_named() -> Iterator[None]:
    """Raise a ``TagError`` as an ``InvalidField`` of ``input``."""
    try:
        yield
    except TagError as error:
        raise InvalidField(f"'input': {error}", param="input") from None


def _charge_or_refund(
    failure: ApiError | None, meter: SpeechMeter, script: Script, reserved: Reserved
) -> None:
    """Charge the request, or refund its characters.

    It is charged when any sound was sent, or when the client disconnected after the engine had made
    sound. A lack of capacity refunds the request unit too.
    """
    has_audio = meter.clock.first_audio is not None
    disconnected = isinstance(failure, ClientDisconnected)
    if failure is None or meter.pcm_bytes or (disconnected and has_audio):
        meter.charge(script.characters, len(script.sentences))
    elif isinstance(failure, SpeechFull | ServerOverloaded):
        reserved.refund()
    else:
        reserved.refund_characters()


def _identity(call: SpeechCall, reserved: Reserved) -> Identity:
    return Identity(
        request_id=call.request_id,
        organization_id=call.principal.organization_id,
        api_key_id=call.principal.api_key_id,
        day=reserved.day,
        voice=call.voice,
        audio_format=call.audio_format,
        transport="http",
        arrived=call.arrived,
    )
