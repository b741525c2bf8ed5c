"""The routes of the simulated speech server, as a plain ASGI application."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import io
import os
from typing import Any, Final

import msgspec
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError

from core.ids import uuid7_hex
from simulators.application import Application, Rejected, header_names, until_disconnected
from simulators.serving import read_body, respond
from simulators.speech.answer import (
    Answer,
    Framing,
    Said,
    Speaker,
    Spoken,
    captions,
    in_format,
    word_header,
)
from simulators.speech.faults import Faults, SpeechFault
from simulators.speech.options import (
    BadDirective,
    Directive,
    SpeechOptions,
    read_directive,
    without_directive,
)
from simulators.speech.requests_log import SpeechEntry, SpeechLog
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH
from speech.engines import EngineError

MODEL: Final = "simulated-tts"
PRESETS: Final = ("ava", "noah", "meera", "arjun")

_VOICES: Final = "/v1/audio/voices"


class _InMemory(MemoryFileUploadHandler):
    """Keeps uploaded files in memory: the body's size was bounded before."""

    def handle_raw_input(self, *args: Any, **kwargs: Any) -> None:
        self.activated = True


class _Rejected(Rejected):
    def __init__(self, status: int, message: str) -> None:
        error = {"message": message, "type": "invalid_request_error"}
        super().__init__(status, {"error": error}, message)


class SpeechSimulator(Application):
    """The simulated speech server."""

    def __init__(self, options: SpeechOptions) -> None:
        super().__init__(options.api_key)
        self._options = options
        self._log = SpeechLog()
        self._speaker = Speaker()
        self._uploads: dict[str, bytes] = {}
        self._deleted: set[str] = set()

    async def close(self) -> None:
        """Free the embedded voice."""
        await self._speaker.close()

    def refusal(self, status: int, message: str, kind: str) -> _Rejected:
        return _Rejected(status, message)

    async def route(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        match scope["method"], path:
            case "POST", "/v1/audio/speech" | "/dev/captioned_speech":
                await self._speech(scope, receive, send)
            case "POST", "/v1/audio/voices":
                await self._upload(scope, receive, send)
            case "GET", "/v1/audio/voices":
                await respond(send, 200, {"voices": [*PRESETS, *self._uploads]})
            case "DELETE", _ if path.startswith(_VOICES + "/"):
                await self._delete(scope, path.removeprefix(_VOICES + "/"), send)
            case "GET", "/v1/models":
                models = [{"id": MODEL, "object": "model", "owned_by": "svc-simulator"}]
                await respond(send, 200, {"object": "list", "data": models})
            case "GET", "/health":
                await respond(send, 200, {"status": "ok"})
            case "GET", "/sim/requests":
                log = self._log
                account = {
                    "requests": list(log.entries),
                    "running": log.running,
                    "most_running": log.most_running,
                }
                await respond(send, 200, account)
            case "DELETE", "/sim/requests":
                self._log.forget()
                await respond(send, 204, b"")
            case _:
                raise _Rejected(404, "There is nothing here.")

    async def _speech(self, scope: Any, receive: Any, send: Any) -> None:
        fields = _object(await read_body(receive))
        kind = "captions" if scope["path"] == "/dev/captioned_speech" else "speech"
        entry = _entry(scope, kind, str(fields.get("voice", "")), fields)
        transport: asyncio.Transport = scope["state"]["transport"]
        answering = self._speak(entry, fields, send, transport)
        await until_disconnected(self.answer(entry, answering, send), transport, receive)

    def ended(self, entry: SpeechEntry) -> None:
        self._log.ended(entry)

    async def _speak(
        self, entry: SpeechEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> None:
        self._log.began()
        answer = await self._composed(entry, fields, send, transport)
        await answer.deliver()

    async def _composed(
        self, entry: SpeechEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> Answer:
        text, voice, model = (_text(fields, name) for name in ("input", "voice", "model"))
        try:
            directive = read_directive(model, voice, text)
        except BadDirective as bad:
            raise _Rejected(400, str(bad)) from None
        faults = self._options.faults if directive.fault is None else directive.fault
        entry.fault = faults.text
        audio_format = _format(fields)
        speaker = self._speaker_of(entry, fields, without_directive(voice))
        utterance = Spoken(without_directive(text), speaker, _speed(fields))
        pcm, words = await self._sound(utterance, faults)
        entry.audio_ms = round(1000 * len(pcm) / (SAMPLE_RATE * SAMPLE_WIDTH))
        framing = _framing(fields)
        body = _body(pcm, audio_format, directive, faults, framing)
        content_type = audio_format.content_type.encode()
        if entry.kind == "captions":
            body, content_type = captions(body, content_type, words), b"application/json"
        if is_timed := fields.get("word_timestamps") is True:
            _refuse_streamed(framing)
        return Answer(
            entry=entry,
            body=body,
            content_type=content_type,
            framing=framing,
            more_headers=word_header(words) if is_timed else (),
            directive=directive,
            faults=faults,
            delay=self._options.delay if directive.first is None else directive.first,
            send=send,
            transport=transport,
        )

    def _speaker_of(self, entry: SpeechEntry, fields: dict[str, Any], voice: str) -> str:
        """Return the speaker: the hash of a reference clip, or the name of a voice."""
        if isinstance(given := fields.get("ref_audio"), str):
            clip = _clip(given)
            entry.clip_sha256 = hashlib.sha256(clip).hexdigest()
            entry.body = {**fields, "ref_audio": f"{len(clip)} bytes"}
            return entry.clip_sha256
        if voice in self._uploads:
            entry.clip_sha256 = hashlib.sha256(self._uploads[voice]).hexdigest()
            return entry.clip_sha256
        if voice in self._deleted or (self._options.voices and voice not in self._options.voices):
            raise _Rejected(404, f"There is no voice {voice!r}.")
        if not voice:
            raise _Rejected(400, "voice is missing.")
        return voice

    async def _sound(self, spoken: Spoken, faults: Faults) -> Said:
        try:
            said = await self._speaker.speak(spoken)
        except EngineError as error:
            raise _Rejected(500, str(error)) from None
        if SpeechFault.SILENCE in faults:
            return said._replace(pcm=bytes(len(said.pcm)))
        return said._replace(pcm=said.pcm[:4]) if SpeechFault.SHORT in faults else said

    async def _upload(self, scope: Any, receive: Any, send: Any) -> None:
        content = await read_body(receive)
        names, clip = _form(scope, content)
        name = names.get("name", "")
        entry = _entry(scope, "upload", name, dict(names))
        entry.clip_sha256 = hashlib.sha256(clip).hexdigest()
        self._log.began()
        try:
            directive = read_directive(*names.values())
            faults = self._options.faults if directive.fault is None else directive.fault
            if (status := faults.number(SpeechFault.STATUS)) is not None:
                raise _Rejected(int(status), "A simulated failure.")
            if not name or not clip.startswith(b"RIFF"):
                raise _Rejected(400, "Send name, and a WAV file.")
            await asyncio.sleep(self._options.delay if directive.first is None else directive.first)
            self._uploads[name] = clip
            self._deleted.discard(name)
            await respond(send, 200, {"success": True, "voice": {"name": name}})
        except (_Rejected, BadDirective) as problem:
            entry.status = problem.status if isinstance(problem, _Rejected) else 400
            raise _Rejected(entry.status, str(problem)) from None
        finally:
            self._log.ended(entry)

    async def _delete(self, scope: Any, name: str, send: Any) -> None:
        entry = _entry(scope, "deletion", name, {})
        self._log.began()
        known = self._uploads.pop(name, None)
        entry.status = 404 if known is None else 200
        self._log.ended(entry)
        if known is None:
            raise _Rejected(404, f"There is no voice {name!r}.")
        self._deleted.add(name)
        await respond(send, 200, {"success": True})


def _entry(scope: Any, kind: str, voice: str, body: dict[str, Any]) -> SpeechEntry:
    return SpeechEntry(f"speech-{uuid7_hex()}", kind, voice, header_names(scope), body)


def _object(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _Rejected(400, "The body must be a JSON object.") from None


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str) or (name == "input" and not value.strip()):
        raise _Rejected(400, f"{name} must be a text.")
    return value


def _format(fields: dict[str, Any]) -> AudioFormat:
    try:
        return AudioFormat(fields.get("response_format", "wav"))
    except ValueError:
        raise _Rejected(400, f"response_format is one of {', '.join(AudioFormat)}.") from None


def _speed(fields: dict[str, Any]) -> float:
    speed = fields.get("speed", 1.0)
    if type(speed) not in (int, float) or not 0.25 <= speed <= 4:
        raise _Rejected(400, "speed is a number from 0.25 to 4.")
    return float(speed)


def _framing(fields: dict[str, Any]) -> Framing:
    if fields.get("stream_format") == "sse":
        return Framing.EVENTS
    streamed = fields.get("stream") is True or fields.get("stream_format") == "audio"
    return Framing.CHUNKED if streamed else Framing.WHOLE


def _refuse_streamed(framing: Framing) -> None:
    if framing is not Framing.WHOLE:
        raise _Rejected(400, "word_timestamps is not supported with stream.")


def _body(
    pcm: bytes, audio_format: AudioFormat, directive: Directive, faults: Faults, framing: Framing
) -> bytes:
    if SpeechFault.GARBAGE in faults:
        return os.urandom(5_000)
    sizes = directive.sizes or ("exact" if framing is Framing.WHOLE else "max")
    body = in_format(pcm, audio_format, directive.rate, directive.channels, sizes)
    return body + b"\x01" if SpeechFault.ODD in faults else body


def _clip(given: str) -> bytes:
    try:
        clip = binascii.a2b_base64(given.removeprefix("data:audio/wav;base64,"), strict_mode=True)
    except ValueError:
        raise _Rejected(400, "ref_audio must be a WAV file in base64.") from None
    if not clip.startswith(b"RIFF"):
        raise _Rejected(400, "ref_audio must be a WAV file in base64.")
    return clip


def _form(scope: Any, content: bytes) -> tuple[dict[str, str], bytes]:
    """Parse a multipart body into its texts and its one file."""
    given = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    meta = {"CONTENT_TYPE": given, "CONTENT_LENGTH": str(len(content))}
    try:
        texts, files = MultiPartParser(meta, io.BytesIO(content), [_InMemory()]).parse()
    except MultiPartParserError as error:
        raise _Rejected(400, str(error)) from None
    clips = [upload.read() for name in files for upload in files.getlist(name)]
    if len(clips) != 1:
        raise _Rejected(400, "Send one file.")
    return {name: str(value) for name, value in texts.items()}, clips[0]
