"""The speech surface's part of its OpenAPI document.

docs/api/speech.md says in words what this says to machines. OpenAPI has no word for a WebSocket:
its operation is the upgrade, and ``x-websocket`` has the messages of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from speech.audio import CHANNELS, SAMPLE_RATE
from speech.clones.names import MAX_NAME_LENGTH
from speech.clones.wire import CloneObject
from speech.encoding import AudioFormat
from speech.errors import (
    CloneNotFound,
    NameTaken,
    QuotaExceeded,
    SpeechFailed,
    SpeechFull,
    SpeechTimedOut,
    TooManyClones,
    UnknownVoice,
    error_type,
)
from speech.views import Deletion, VoiceList
from speech.wav import MAX_SECONDS, MIN_SECONDS
from speech.wire import LONGEST_INPUT
from svc_project.lib import errors
from svc_project.lib.errors import ApiError
from svc_project.lib.openapi import (
    BEARER,
    INTEGER,
    REQUEST_ID,
    RETRY_AFTER,
    STRING,
    WWW_AUTHENTICATE,
    Json,
    Schemas,
    answer,
    body,
    content,
    failures,
    header,
    path_parameter,
)

SENT: Final = (CloneObject, Deletion, VoiceList)

_KEY: Final[list[Json]] = [{BEARER: []}]
_EVERYWHERE: Final = (errors.InvalidCredential, errors.InternalError)
_SPOKEN: Final[tuple[type[ApiError], ...]] = (
    *_EVERYWHERE,
    SpeechFull,
    SpeechFailed,
    SpeechTimedOut,
    QuotaExceeded,
    errors.ServerOverloaded,
    errors.ServerShuttingDown,
)
SPEECH_ERRORS: Final = (*_SPOKEN, errors.InvalidField, errors.RequestTooLarge, UnknownVoice)
CREATION_ERRORS: Final = (
    *_SPOKEN,
    errors.InvalidField,
    errors.RequestTooLarge,
    TooManyClones,
    NameTaken,
)
DELETION_ERRORS: Final = (*_EVERYWHERE, CloneNotFound)
UPGRADE_ERRORS: Final = (
    *_EVERYWHERE,
    errors.NotFound,
    SpeechFull,
    errors.ServerShuttingDown,
)

_NO_RETRY: Final = header("`false` where trying again can not help.", always=False)
HEADERS: Final[dict[int, Json]] = {
    401: WWW_AUTHENTICATE,
    409: {"x-should-retry": _NO_RETRY},
    429: {
        **RETRY_AFTER,
        "x-quota-reason": header(
            "Which limit it was.",
            {"enum": ["requests_per_minute", "characters_per_day", "clones_per_hour"]},
        ),
        "retry-after-ms": header("Milliseconds to wait.", always=False),
        "x-should-retry": _NO_RETRY,
    },
    503: {"retry-after": header("Whole seconds to wait.", always=False)},
}
_MILLISECONDS: Final[Json] = {"type": "string", "pattern": "^[0-9]+$"}
_FORMAT: Final[Json] = {"enum": [*(each.value for each in AudioFormat), None]}
CLOSES: Final[dict[str, str]] = {
    "1000": "After `session.done`.",
    "1002": "A frame that the protocol does not have.",
    "1007": "Text that is not UTF-8.",
    "1009": "A message that is too large.",
    "1011": "The gateway failed.",
    "1012": "The server restarts.",
    "4400": "A message that is wrong, out of order or binary.",
    "4401": "The key ended.",
    "4404": "An unknown voice.",
    "4408": "Nothing was sent, or read, for too long.",
    "4429": "A limit.",
    "4502": "The engine failed, was full or took too long.",
}
"""Close codes of the WebSocket and when they come."""

_TEXT: Final[Json] = {"type": "string", "maxLength": LONGEST_INPUT}


_VOICE: Final[Json] = {
    "description": "A voice's id, or an object that has it.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "required": ["id"], "properties": {"id": {**STRING, "minLength": 1}}},
    ],
}


def error_schema(classes: Sequence[type[ApiError]]) -> Json:
    """The body of an error (speech contract, Error body)."""
    return _error({"enum": sorted({error_type(each) for each in classes})})


def _error(kind: Json) -> Json:
    return _object({"error": _object({"message": STRING, "type": kind})})


def _object(required: Json, optional: Json | None = None) -> Json:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def _message(kind: str, required: Json | None = None, optional: Json | None = None) -> Json:
    return _object({"type": {"const": kind}, **(required or {})}, optional)


CLIENT_MESSAGES: Final[dict[str, Json]] = {
    "start": _message("start", {"voice": _VOICE}, {"response_format": _FORMAT}),
    "text": _message("text", {"text": _TEXT}),
    "flush": _message("flush"),
    "done": _message("done"),
    "cancel": _message("cancel"),
}
SERVER_MESSAGES: Final[dict[str, Json]] = {
    "ready": _message(
        "ready",
        {
            "sample_rate": {"const": SAMPLE_RATE},
            "channels": {"const": CHANNELS},
            "limits": _object(
                {
                    "message_characters": INTEGER,
                    "message_bytes": INTEGER,
                    "session_characters": INTEGER,
                }
            ),
        },
    ),
    "session.done": _message("session.done"),
    "error": _message("error", {"error": _object({"message": STRING, "type": STRING})}),
}


def paths(schemas: Schemas) -> Json:
    """Every path of the surface."""
    return {
        "/v1/audio/speech": {"post": _speech()},
        "/v1/audio/speech/stream": {"get": _stream()},
        "/v1/models": {"get": _voices(schemas)},
        "/v1/voices": {"post": _creation(schemas)},
        "/v1/voices/{voice}": {"delete": _deletion(schemas)},
        "/health": {"get": _health()},
    }


def _speech() -> Json:
    request = _object(
        {"voice": _VOICE, "input": {**_TEXT, "minLength": 1}},
        {"response_format": _FORMAT, "model": {"description": "Ignored."}},
    )
    return {
        "operationId": "createSpeech",
        "summary": "Speak a text",
        "description": "One complete file, or with `pcm` a stream. Other fields are ignored.",
        "security": _KEY,
        "requestBody": body(request),
        "responses": {
            "200": answer(
                "The sound: one channel, 24 000 samples a second.",
                {each.content_type: {} for each in AudioFormat},
                {
                    "cache-control": header("Not to be kept.", {"const": "no-store"}),
                    "x-upstream-ms": header("Milliseconds of the engine.", _MILLISECONDS),
                    "x-gateway-ms": header("Milliseconds in all.", _MILLISECONDS),
                },
            ),
            **failures(SPEECH_ERRORS, error_schema, HEADERS),
        },
    }


def _stream() -> Json:
    return {
        "operationId": "streamSpeech",
        "summary": "A WebSocket: text comes in pieces, each sentence goes out as one file",
        "description": "Without an upgrade it is 404.",
        "security": _KEY,
        "responses": {
            "101": {"description": "The session begins.", "headers": REQUEST_ID},
            **failures(UPGRADE_ERRORS, error_schema, HEADERS),
        },
        "x-websocket": {
            "client": list(CLIENT_MESSAGES.values()),
            "server": list(SERVER_MESSAGES.values()),
            "binary": "One sentence, as one complete file of the `response_format`.",
            "close": CLOSES,
        },
    }


def _voices(schemas: Schemas) -> Json:
    return {
        "operationId": "listVoices",
        "summary": "The voices that the account can use",
        "security": _KEY,
        "responses": {
            "200": answer("The voices.", content(schemas.of[VoiceList])),
            **failures(_EVERYWHERE, error_schema, HEADERS),
        },
    }


def _creation(schemas: Schemas) -> Json:
    request = _object(
        {
            "name": {**STRING, "minLength": 1, "maxLength": MAX_NAME_LENGTH},
            "audio_b64": {
                **STRING,
                "contentEncoding": "base64",
                "contentMediaType": "audio/wav",
                "description": f"A WAV file of {MIN_SECONDS} to {MAX_SECONDS} seconds.",
            },
            "consent": {"const": True, "description": "The speaker agrees to be cloned."},
        }
    )
    return {
        "operationId": "createVoice",
        "summary": "Make a voice from a clip",
        "security": _KEY,
        "requestBody": body(request),
        "responses": {
            "201": {
                **answer("The voice.", content(schemas.of[CloneObject])),
                "links": {
                    "delete": {
                        "operationId": "deleteVoice",
                        "parameters": {"voice": "$response.body#/id"},
                    }
                },
            },
            **failures(CREATION_ERRORS, error_schema, HEADERS),
        },
    }


def _deletion(schemas: Schemas) -> Json:
    return {
        "operationId": "deleteVoice",
        "summary": "Delete a cloned voice",
        "security": _KEY,
        "parameters": [path_parameter("voice", "The id of a clone of the account.")],
        "responses": {
            "200": answer("It is deleted.", content(schemas.of[Deletion])),
            **failures(DELETION_ERRORS, error_schema, HEADERS),
        },
    }


def _health() -> Json:
    health = _object({"ok": {"const": True}, "uptime_s": {"type": "number", "minimum": 0}})
    return {
        "operationId": "getHealth",
        "summary": "Whether this process serves",
        "security": [],
        "responses": {
            "200": answer("It serves.", content(health)),
            **failures([errors.ServerShuttingDown], error_schema, HEADERS),
        },
    }
