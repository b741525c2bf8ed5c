"""``/v1/audio/speech/stream``: a WebSocket in and out, nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import msgspec
from django.conf import settings

from accounts.keyring import authorization, keyring
from accounts.models import Scope
from accounts.principal import Principal
from speech.audio import CHANNELS, SAMPLE_RATE
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
from speech.meter import Identity, SpeechMeter
from speech.service import service
from speech.session import CheckKey, Session, http_status
from speech.session_bounds import SessionBounds, SessionIdle, SessionTooLong
from speech.synthesis import SpeechService
from speech.wire import LARGEST_MESSAGE, LONGEST_INPUT, LONGEST_SESSION, Start, parse_message
from svc_project.lib.drain import drain
from svc_project.lib.errors import (
    ApiError,
    BadRequest,
    ClientDisconnected,
    InternalError,
    InvalidCredential,
    InvalidField,
    RequestTooLarge,
    ServerOverloaded,
    ServerShuttingDown,
)
from svc_project.lib.places import sessions, unstarted
from svc_project.lib.websocket import ReaderStalled, SocketConsumer

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
"""How a session ends, by what went wrong (docs/api/speech.md, Close codes); 1011 for the rest."""

_READY = msgspec.json.encode(
    {
        "type": "ready",
        "sample_rate": SAMPLE_RATE,
        "channels": CHANNELS,
        "limits": {
            "message_characters": LONGEST_INPUT,
            "message_bytes": LARGEST_MESSAGE,
            "session_characters": LONGEST_SESSION,
        },
    }
).decode()
_BOUNDS = SessionBounds(
    idle_seconds=settings.SVC_SPEECH_IDLE_SECONDS,
    longest_seconds=settings.SVC_SPEECH_SESSION_SECONDS,
    messages_per_second=settings.SVC_SPEECH_MESSAGES_PER_SECOND,
)
_SESSION_DONE = '{"type":"session.done"}'


class SpeechStreamConsumer(SocketConsumer):
    """Authenticates before the handshake, then holds one session."""

    largest_message: ClassVar[int] = LARGEST_MESSAGE
    overload_headers = RETRY_SOON

    async def converse(self) -> None:
        credential = authorization(self.scope["headers"])

        async def check_key() -> Principal:
            return await keyring.authenticate(credential, SCOPES, self.scope)

        caller = await check_key()
        self.owner = caller.organization_id
        if drain.draining:
            raise ServerShuttingDown
        speech = service()
        speech.check_refused(caller)
        # Asked already here, where the answer is a status that clients know to try again.
        sessions.check(1, self.owner)
        self.hold(unstarted)
        await self.accept()
        try:
            await self._run_session(speech, check_key)
        except ApiError as error:
            speech.count_refused(caller, error)
            raise

    async def _run_session(self, speech: SpeechService, check_key: CheckKey) -> None:
        """One session, from its first message to ``session.done``."""
        start = await self._start()
        principal = await check_key()
        meter = await self._open(speech, start, principal)
        session = Session(speech, self, start, meter, _BOUNDS)
        failure = await session.run(principal, check_key, _READY)
        try:
            await speech.ledger.record(
                meter.receipt(failure, http_status(failure), self._ended_with(failure))
            )
        except InternalError as error:
            failure = failure or error
        if failure is not None:
            raise failure
        await self.send_text(_SESSION_DONE)

    async def _start(self) -> Start:
        """The first message, which must be ``start`` and come in time."""
        receiving = asyncio.ensure_future(self.receive_text())
        try:
            ends: list[asyncio.Future[Any]] = [receiving, self.draining]
            await asyncio.wait(
                ends,
                timeout=settings.SVC_SPEECH_START_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self.draining.done():
                raise self.draining.result()
            if receiving.done():
                message = parse_message(receiving.result())
                if not isinstance(message, Start):
                    raise InvalidField("The first message must be 'start'.", param="type")
                return message
            raise SessionIdle("No 'start' came in time. Send it right after connecting.")
        finally:
            receiving.cancel()

    async def _open(self, speech: SpeechService, start: Start, principal: Principal) -> SpeechMeter:
        """Find the voice and admit the session: one request unit, and a note in the journal."""
        voice = await speech.voices.resolve(start.voice, principal)
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
            reserved.cancel()
            raise
        return meter

    def _ended_with(self, failure: ApiError | None) -> int | None:
        """For the row: the code that a session which failed is closed with."""
        if failure is None or isinstance(failure, ClientDisconnected):
            return None
        return self.close_code(failure)

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
