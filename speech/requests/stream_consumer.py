"""``/v1/audio/speech/stream``: a WebSocket in and out, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from django.conf import settings

from accounts.keys import refusals
from accounts.keys.header import authorization, shown_prefix
from accounts.keys.keyring import keyring
from accounts.keys.principal import Principal
from accounts.models import Scope
from core.asgi.drain import drain
from core.asgi.websocket import ReaderStalled, SocketConsumer
from core.errors import (
    ApiError,
    BadRequest,
    ClientDisconnected,
    InvalidCredential,
    InvalidField,
    RequestTooLarge,
    ServerOverloaded,
    ServerShuttingDown,
)
from core.sharing.places import sessions, unstarted
from speech.audio.pcm import CHANNELS, SAMPLE_RATE
from speech.errors import (
    RETRY_SOON,
    QuotaExceeded,
    SpeechFailed,
    SpeechFull,
    SpeechTimedOut,
    UnknownVoice,
    error_type,
    speech_error_body,
)
from speech.requests import metrics
from speech.requests.http_request import SpeechService, require_word_times
from speech.requests.meter import SWITCHING_PROTOCOLS, Identity, SpeechMeter
from speech.requests.session import CheckKey, Session
from speech.requests.session_bounds import (
    SessionBounds,
    SessionIdle,
    SessionTooLong,
)
from speech.wire import LARGEST_MESSAGE, LONGEST_INPUT, LONGEST_SESSION, Start, parse_message
from usage import metered

SCOPES = frozenset({Scope.SPEECH})

CLOSE_CODES: dict[type[ApiError], int] = {
    BadRequest: 4400,
    InvalidCredential: 4401,
    UnknownVoice: 4404,
    SessionIdle: 4408,
    SessionTooLong: 4408,
    ReaderStalled: 4408,
    QuotaExceeded: 4429,
    SpeechFailed: 4502,
    SpeechTimedOut: 4502,
    SpeechFull: 4502,
    ServerOverloaded: 4502,
    RequestTooLarge: 1009,
    ServerShuttingDown: 1012,
}
"""The close code of each error (docs/api/speech.md, Close codes); 1011 for the others."""

_READY: dict[str, Any] = {
    "type": "ready",
    "sample_rate": SAMPLE_RATE,
    "channels": CHANNELS,
    "limits": {
        "message_characters": LONGEST_INPUT,
        "message_bytes": LARGEST_MESSAGE,
        "session_characters": LONGEST_SESSION,
    },
}
_BOUNDS = SessionBounds(
    idle_seconds=settings.SVC_SPEECH_IDLE_SECONDS,
    longest_seconds=settings.SVC_SPEECH_SESSION_SECONDS,
    messages_per_second=settings.SVC_SPEECH_MESSAGES_PER_SECOND,
)
_SESSION_DONE = '{"type":"session.done"}'


class SpeechStreamConsumer(SocketConsumer):
    """Authenticates before the handshake, then holds one session.

    ``service`` gives the process's ``SpeechService``.
    """

    surface: ClassVar[str] = "speech"
    route: ClassVar[str] = "stream"
    largest_message: ClassVar[int] = LARGEST_MESSAGE
    overload_headers = RETRY_SOON
    principal: Principal | None = None
    """The caller, once it is known."""

    def __init__(self, service: Callable[[], SpeechService]) -> None:
        super().__init__()
        self._service = service

    async def converse(self) -> None:
        if self.observed is not None:
            self.observed.key_prefix = shown_prefix(self.scope["headers"])
        check_key = self.key_check()
        caller = self.principal = await check_key()
        self.owner = caller.organization_id
        if drain.draining:
            raise ServerShuttingDown
        speech = self._service()
        speech.check_refused(caller)
        # Checked before the handshake, where clients get a status that they know to retry.
        sessions.check(1, self.owner)
        self.hold(unstarted)
        await self.accept()
        try:
            await self._run_session(speech, check_key)
        except ApiError as error:
            speech.count_refused(caller, error)
            raise

    def key_check(self) -> CheckKey:
        """Return the function that authenticates the caller, at the upgrade and during the session."""
        credential = authorization(self.scope["headers"])

        async def check_key() -> Principal:
            return await keyring.authenticate(credential, SCOPES)

        return check_key

    def ready(self) -> dict[str, Any]:
        """The first message to the client."""
        return _READY

    async def _run_session(self, speech: SpeechService, check_key: CheckKey) -> None:
        """Run one session, from its first message to ``session.done``."""
        start = await self._start()
        principal = await check_key()
        meter = await self._open(speech, start, principal)
        session = Session(speech, self, start, meter, _BOUNDS)
        ready = msgspec.json.encode(self.ready()).decode()
        failure = await session.run(principal, check_key, ready)
        speech.count_unspoken(principal, session.refused_units(failure))
        status = metered.http_status(failure, SWITCHING_PROTOCOLS)
        receipt = meter.receipt(failure, status, self._ended_with(failure))
        metrics.observe(receipt)
        failure = await metered.record(speech.ledger, receipt, failure)
        if failure is not None:
            raise failure
        await self.send_text(_SESSION_DONE)

    async def _start(self) -> Start:
        """Read the first message, which must be ``start`` and arrive in time."""
        receiving = asyncio.ensure_future(self.receive_text())
        try:
            ends: list[asyncio.Future[Any]] = [receiving, self.stopping]
            await asyncio.wait(
                ends,
                timeout=settings.SVC_SPEECH_START_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self.stopping.done():
                raise self.stopping.result()
            if receiving.done():
                message = parse_message(receiving.result())
                if not isinstance(message, Start):
                    raise InvalidField("The first message must be 'start'.", param="type")
                return message
            raise SessionIdle("'start' did not arrive in time. Send it right after connecting.")
        finally:
            receiving.cancel()

    async def _open(self, speech: SpeechService, start: Start, principal: Principal) -> SpeechMeter:
        """Resolve the voice and admit the session: one request unit and a record in the journal."""
        voice = speech.engines.chosen(await speech.voices.resolve(start.voice, principal))
        if start.timestamps is not None:
            require_word_times(voice)
        reserved = await speech.quota.open_session(principal)
        meter = SpeechMeter(
            Identity(
                request_id=self.request_id,
                organization_id=principal.organization_id,
                api_key_id=principal.api_key_id,
                day=reserved.day,
                voice=voice,
                audio_format=start.response_format,
                transport="websocket",
                arrived=self.arrived,
            )
        )
        try:
            self.hold(sessions)
            await speech.ledger.admit_durably(meter.admitted())
        except BaseException:
            reserved.refund()
            raise
        return meter

    def _ended_with(self, failure: ApiError | None) -> int | None:
        """The row's close code: that of a failed session, unless the client disconnected."""
        if failure is None or isinstance(failure, ClientDisconnected):
            return None
        return self.close_code(failure)

    def refused(self, error: ApiError) -> None:
        refusals.report(self, error)

    def render_error(self, error: ApiError) -> bytes:
        return speech_error_body(error)

    def error_message(self, error: ApiError) -> str:
        return msgspec.json.encode(
            {
                "type": "error",
                "error": {"message": error.message, "type": error_type(error)},
            }
        ).decode()

    def close_code(self, error: ApiError) -> int:
        return next((code for kind, code in CLOSE_CODES.items() if isinstance(error, kind)), 1011)
