"""Schemas of what speech clients and the gateway send: fields that bodies and messages share, the
messages of the WebSocket, its close codes.
"""

from __future__ import annotations

from typing import Final

from core.api.openapi import INTEGER, STRING, Json
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import CHANNELS, SAMPLE_RATE
from speech.wire import FASTEST, LONGEST_INPUT, LONGEST_INSTRUCTIONS, SLOWEST, Timestamps

FORMAT: Final[Json] = {
    "enum": [*(each.value for each in AudioFormat), None],
    "description": "The form of the sound; `wav` by default. `pcm` is signed 16 bits, little-endian, "
    "without a header, and over HTTP comes while it is made. Every other is a complete file.",
}
MANNER: Final[dict[str, Json]] = {
    "speed": {
        "type": ["number", "null"],
        "minimum": SLOWEST,
        "maximum": FASTEST,
        "description": "A factor on the voice's own pace; 1 by default. Servers that cannot speak at "
        "another pace ignore it. It changes no charged characters.",
    },
    "instructions": {
        "type": ["string", "null"],
        "maxLength": LONGEST_INSTRUCTIONS,
        "description": "How to speak, in words. Passed to speech servers that take it, dropped by every "
        "other engine.",
    },
}
CLOSES: Final[dict[str, str]] = {
    "1000": "After `session.done`.",
    "1002": "A frame that the protocol does not have.",
    "1007": "Text that is not UTF-8.",
    "1008": "Too many pings or other control frames.",
    "1009": "A message that is too large or in too many fragments.",
    "1011": "The gateway failed.",
    "1012": "The server restarts.",
    "4400": "A message that is wrong, out of order or binary.",
    "4401": "The key ended.",
    "4404": "An unknown voice.",
    "4408": "Nothing was sent, or read, for too long, or the session lasted too long.",
    "4429": "A limit.",
    "4502": "The engine failed, was full or took too long, or the server is at capacity.",
}
"""Close codes of the WebSocket and their meanings."""

TEXT: Final[Json] = {"type": "string", "maxLength": LONGEST_INPUT}
INPUT: Final[Json] = {
    **TEXT,
    "minLength": 1,
    "description": "The text to speak, not blank. May hold audio tags such as `[pause]`; one that "
    "begins with `<speak` is SSML. Its code points without tags are charged, and refunded in full "
    "where nothing could be spoken.",
}
_VOICE_ID: Final[Json] = {**STRING, "minLength": 1, "description": "The voice's id."}
VOICE: Final[Json] = {
    "description": "A voice's id from `GET /v1/models`, or an object that has it. It decides about "
    "engine and language. An unknown one, also somebody else's, is 400 `proxy_error`.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "required": ["id"], "properties": {"id": _VOICE_ID}},
    ],
}


def object_schema(required: Json, optional: Json | None = None) -> Json:
    """An object with all of ``required`` and any of ``optional``."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def _message(
    kind: str, meaning: str, required: Json | None = None, optional: Json | None = None
) -> Json:
    named = {"const": kind, "description": "The kind of the message."}
    schema = object_schema({"type": named, **(required or {})}, optional)
    return {**schema, "description": meaning}


def _number(meaning: str) -> Json:
    return {**INTEGER, "description": meaning}


def _text(meaning: str) -> Json:
    return {**STRING, "description": meaning}


TIMESTAMPS: Final[Json] = {
    "enum": [*(each.value for each in Timestamps), None],
    "description": "Send when each word is spoken; not with every speech server.",
}
_TIMED_WORD: Final[Json] = object_schema(
    {
        "text": _text("The word as it is spoken."),
        "start": {"type": "number", "description": "Seconds from the beginning of the frame."},
        "end": {
            "type": "number",
            "description": "Where the next word begins, or the silence before it.",
        },
        "from": _number("The first code point, as received, that it stands for."),
        "to": _number("The first code point behind it."),
    }
)
_KEEP_OPEN: Final[Json] = {
    "type": ["boolean", "null"],
    "description": "`done` ends an utterance, and the next `text` begins another.",
}
_SSML: Final[Json] = {
    "type": ["boolean", "null"],
    "description": "A text that begins with `<speak` is SSML, as over HTTP; with `keep_open` that of "
    "an utterance.",
}
_OF_AN_UTTERANCE: Final[Json] = {
    "sentences": _number("Those of the utterance that were sent."),
    "characters": _number("Their characters, which are charged."),
}
ERROR: Final[Json] = {
    **object_schema(
        {
            "message": _text("What is wrong, and what to do."),
            "type": _text("The type of the error, as over HTTP."),
        }
    ),
    "description": "What went wrong.",
}
CLIENT_MESSAGES: Final[dict[str, Json]] = {
    "start": _message(
        "start",
        "First, within 10 seconds.",
        {"voice": VOICE},
        {
            "response_format": FORMAT,
            **MANNER,
            "keep_open": _KEEP_OPEN,
            "timestamps": TIMESTAMPS,
            "ssml": _SSML,
        },
    ),
    "text": _message(
        "text",
        "A piece of the text. A sentence is spoken once one more whole word follows it.",
        {"text": {**TEXT, "description": "More of the text, cut anywhere. May be empty."}},
    ),
    "flush": _message("flush", "Speak what is there, complete sentence or not."),
    "done": _message("done", "No more text comes."),
    "cancel": _message("cancel", "Drop what was not spoken, and end. It is not charged."),
    "clear": _message("clear", "With `keep_open`: drop what was not spoken."),
    "close": _message("close", "With `keep_open`: end the session after its text."),
}
SERVER_MESSAGES: Final[dict[str, Json]] = {
    "ready": _message(
        "ready",
        "Text can come.",
        {
            "sample_rate": {"const": SAMPLE_RATE, "description": "Samples a second."},
            "channels": {"const": CHANNELS, "description": "The sound is mono."},
            "limits": {
                **object_schema(
                    {
                        "message_characters": _number("The most code points of one `text`."),
                        "message_bytes": _number("The most bytes of one message."),
                        "session_characters": _number(
                            "The most code points of a session, with `keep_open` of an utterance."
                        ),
                    }
                ),
                "description": "What a session may send.",
            },
        },
    ),
    "timestamps": _message(
        "timestamps",
        "The words of the next frame.",
        {
            "sentence": _number("The number of the frame, from 0."),
            "words": {
                "type": "array",
                "items": _TIMED_WORD,
                "description": "Its words in their order.",
            },
        },
    ),
    "utterance.done": _message(
        "utterance.done", "With `keep_open`: the utterance was sent.", _OF_AN_UTTERANCE
    ),
    "cleared": _message(
        "cleared",
        "The answer to `clear`: what of the utterance was sent.",
        {**_OF_AN_UTTERANCE, "text": _text("What was spoken, as received, without tags.")},
    ),
    "draining": _message(
        "draining",
        "The server stops; the session may last so long.",
        {"seconds": _number("How long the session may still last.")},
    ),
    "session.done": _message("session.done", "Everything was sent; the gateway closes with 1000."),
    "error": _message(
        "error",
        "The end of the session, or a sentence that the voice cannot speak.",
        {"error": ERROR},
    ),
}
