"""The speech surface's part of its OpenAPI document.

docs/api/speech.md describes the same for people. OpenAPI cannot describe a WebSocket: its operation
is the upgrade, and ``x-websocket`` has the messages of both sides.
"""

from __future__ import annotations

from typing import Final

from core import errors
from core.api.openapi import (
    REQUEST_ID,
    STRING,
    Json,
    Schemas,
    answer,
    body,
    content,
    explain,
    failures,
    header,
    path_parameter,
)
from core.asgi.websocket import BadHandshake, UpgradeRequired
from core.errors import ApiError
from speech.api import openapi_pronunciations
from speech.api.meanings import MEANINGS
from speech.api.openapi_errors import EVERYWHERE, HEADERS, KEY, error_schema
from speech.api.openapi_messages import (
    CLIENT_MESSAGES,
    CLOSES,
    FORMAT,
    INPUT,
    MANNER,
    SERVER_MESSAGES,
    TIMESTAMPS,
    VOICE,
    object_schema,
)
from speech.audio.encoding import AudioFormat
from speech.audio.wav import MAX_SECONDS, MIN_SECONDS
from speech.errors import (
    CloneNotFound,
    NameTaken,
    QuotaExceeded,
    SpeechFailed,
    SpeechFull,
    SpeechTimedOut,
    TooManyClones,
    UnknownVoice,
)
from speech.names import MAX_NAME_LENGTH
from speech.voices.clones.wire import CloneObject
from speech.voices.views import Deletion, NamedModels, NamedVoices, VoiceEntry, VoiceList
from speech.wire import StreamFormat

SENT: Final = (
    CloneObject,
    Deletion,
    NamedModels,
    NamedVoices,
    *openapi_pronunciations.SENT,
    VoiceEntry,
    VoiceList,
)

_NAME: Final = rf"^\s*\S(?:.{{0,{MAX_NAME_LENGTH - 2}}}\S)?\s*$"
"""The pattern of a clone's name; whitespace around it does not count."""
_SPOKEN: Final[tuple[type[ApiError], ...]] = (
    *EVERYWHERE,
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
ENTRY_ERRORS: Final = (*EVERYWHERE, errors.NotFound)
DELETION_ERRORS: Final = (*EVERYWHERE, CloneNotFound)
UPGRADE_ERRORS: Final = (
    *EVERYWHERE,
    BadHandshake,
    UpgradeRequired,
    errors.NotFound,
    SpeechFull,
    errors.ServerShuttingDown,
)

_MILLISECONDS: Final[Json] = {"type": "string", "pattern": "^[0-9]+$"}
_STREAM_FORMAT: Final[Json] = {
    "enum": [*(each.value for each in StreamFormat), None],
    "description": "`audio`, the default, answers the sound itself; `sse` sends it in server-sent "
    "events, the last of which has the charged characters.",
}


def paths(schemas: Schemas) -> Json:
    """Every path of the surface."""
    explain(schemas.components, MEANINGS)
    return {
        "/v1/audio/speech": {"post": _speech()},
        "/v1/audio/speech/stream": {"get": _stream()},
        "/v1/models": {"get": _voices(schemas)},
        "/v1/models/{voice}": {"get": _voice(schemas)},
        "/v1/audio/voices": {"get": _named(schemas, NamedVoices, "The voices.")},
        "/v1/audio/models": {"get": _named(schemas, NamedModels, "The one model.")},
        "/v1/voices": {"post": _creation(schemas)},
        "/v1/voices/{voice}": {"delete": _deletion(schemas)},
        **openapi_pronunciations.paths(schemas),
        "/health": {"get": _health()},
    }


def _speech() -> Json:
    request = object_schema(
        {"voice": VOICE, "input": INPUT},
        {
            "response_format": FORMAT,
            **MANNER,
            "stream_format": _STREAM_FORMAT,
            "timestamps": {
                **TIMESTAMPS,
                "description": "`word` sends when each word is spoken, before the sound of its "
                "sentence. Needs `stream_format` `sse`, and an embedded or neural voice.",
            },
            "model": {
                "description": "Ignored, whatever it is: the voice decides. SDKs insist on one."
            },
        },
    )
    return {
        "operationId": "createSpeech",
        "summary": "Speak a text",
        "description": "One complete file, or with `pcm` a stream. Other fields are ignored.",
        "security": KEY,
        "requestBody": body(request),
        "responses": {
            "200": answer(
                "The sound: one channel, 24,000 samples a second.",
                {**{each.content_type: {} for each in AudioFormat}, "text/event-stream": {}},
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
        "description": "Without an upgrade it is 426.",
        "security": KEY,
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
        "security": KEY,
        "responses": {
            "200": answer("The voices.", content(schemas.of[VoiceList])),
            **failures(EVERYWHERE, error_schema, HEADERS),
        },
    }


def _voice(schemas: Schemas) -> Json:
    return {
        "operationId": "getVoice",
        "summary": "One of the voices that the account can use",
        "security": KEY,
        "parameters": [path_parameter("voice", "The id of a voice.")],
        "responses": {
            "200": answer("The voice.", content(schemas.of[VoiceEntry])),
            **failures(ENTRY_ERRORS, error_schema, HEADERS),
        },
    }


def _named(schemas: Schemas, listed: type, description: str) -> Json:
    return {
        "operationId": f"list{listed.__name__}",
        "summary": "A list for clients of speech servers",
        "security": KEY,
        "responses": {
            "200": answer(description, content(schemas.of[listed])),
            **failures(EVERYWHERE, error_schema, HEADERS),
        },
    }


def _creation(schemas: Schemas) -> Json:
    request = object_schema(
        {
            "name": {
                **STRING,
                "pattern": _NAME,
                "description": "A name for people, without blanks around it. Unique in the account "
                "whatever the case: else 409.",
            },
            "audio_b64": {
                **STRING,
                "contentEncoding": "base64",
                "contentMediaType": "audio/wav",
                "description": f"A WAV file of {MIN_SECONDS} to {MAX_SECONDS} seconds: one speaker, a quiet "
                "room. It is stored encrypted and never served.",
            },
            "consent": {
                "const": True,
                "description": "The speaker agrees to be cloned. Anything but `true` is 400.",
            },
        }
    )
    return {
        "operationId": "createVoice",
        "summary": "Make a voice from a clip",
        "security": KEY,
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
        "security": KEY,
        "parameters": [path_parameter("voice", "The id of a clone of the account.")],
        "responses": {
            "200": answer("It is deleted.", content(schemas.of[Deletion])),
            **failures(DELETION_ERRORS, error_schema, HEADERS),
        },
    }


def _health() -> Json:
    health = object_schema(
        {
            "ok": {"const": True, "description": "This process serves."},
            "uptime_s": {
                "type": "number",
                "minimum": 0,
                "description": "Seconds since this process started; a restart begins at zero.",
            },
        }
    )
    return {
        "operationId": "getHealth",
        "summary": "Whether this process serves",
        "security": [],
        "responses": {
            "200": answer("It serves.", content(health)),
            **failures([errors.ServerShuttingDown], error_schema, HEADERS),
        },
    }
