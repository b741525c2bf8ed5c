"""Schemas of what speech clients and the gateway send: fields that bodies and messages share, the
messages of the WebSocket, its close codes.
"""

from __future__ import annotations

from typing import Final

from core.api.openapi import INTEGER, STRING, Json
from speech.audio.encoding import AudioFormat
from speech.audio.pcm import CHANNELS, SAMPLE_RATE
from speech.wire import FASTEST, LONGEST_INPUT, LONGEST_INSTRUCTIONS, SLOWEST, Timestamps

FORMAT: Final[Json] = {"enum": [*(each.value for each in AudioFormat), None]}
MANNER: Final[dict[str, Json]] = {
    "speed": {
        "type": ["number", "null"],
        "minimum": SLOWEST,
        "maximum": FASTEST,
        "description": "A factor on the voice's own pace.",
    },
    "instructions": {
        "type": ["string", "null"],
        "maxLength": LONGEST_INSTRUCTIONS,
        "description": "How to speak; for engines that take it.",
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
    "description": "May hold audio tags; a text that begins with `<speak` is SSML.",
}
VOICE: Final[Json] = {
    "description": "A voice's id, or an object that has it.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "required": ["id"], "properties": {"id": {**STRING, "minLength": 1}}},
    ],
}


def object_schema(required: Json, optional: Json | None = None) -> Json:
    """An object with all of ``required`` and any of ``optional``."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def _message(kind: str, required: Json | None = None, optional: Json | None = None) -> Json:
    return object_schema({"type": {"const": kind}, **(required or {})}, optional)


TIMESTAMPS: Final[Json] = {
    "enum": [*(each.value for each in Timestamps), None],
    "description": "Send when each word is spoken; only for embedded voices.",
}
_TIMED_WORD: Final[Json] = object_schema(
    {
        "text": {**STRING, "description": "The word as it is spoken."},
        "start": {"type": "number", "description": "Seconds from the beginning of the frame."},
        "end": {"type": "number"},
        "from": {**INTEGER, "description": "The code points as received that it stands for."},
        "to": INTEGER,
    }
)
_KEEP_OPEN: Final[Json] = {
    "type": ["boolean", "null"],
    "description": "`done` ends an utterance, and the next `text` begins another.",
}
_OF_AN_UTTERANCE: Final[Json] = {
    "sentences": {**INTEGER, "description": "Those of the utterance that were sent."},
    "characters": {**INTEGER, "description": "Their characters, which are charged."},
}
CLIENT_MESSAGES: Final[dict[str, Json]] = {
    "start": _message(
        "start",
        {"voice": VOICE},
        {
            "response_format": FORMAT,
            **MANNER,
            "keep_open": _KEEP_OPEN,
            "timestamps": TIMESTAMPS,
        },
    ),
    "text": _message("text", {"text": TEXT}),
    "flush": _message("flush"),
    "done": _message("done"),
    "cancel": _message("cancel"),
    "clear": {
        **_message("clear"),
        "description": "With `keep_open`: drop what was not spoken.",
    },
    "close": {
        **_message("close"),
        "description": "With `keep_open`: end the session after its text.",
    },
}
SERVER_MESSAGES: Final[dict[str, Json]] = {
    "ready": _message(
        "ready",
        {
            "sample_rate": {"const": SAMPLE_RATE},
            "channels": {"const": CHANNELS},
            "limits": object_schema(
                {
                    "message_characters": INTEGER,
                    "message_bytes": INTEGER,
                    "session_characters": INTEGER,
                }
            ),
        },
    ),
    "timestamps": {
        **_message(
            "timestamps",
            {"sentence": INTEGER, "words": {"type": "array", "items": _TIMED_WORD}},
        ),
        "description": "The words of the next frame, the frames counted from 0.",
    },
    "utterance.done": {
        **_message("utterance.done", _OF_AN_UTTERANCE),
        "description": "With `keep_open`: the utterance was sent.",
    },
    "cleared": {
        **_message("cleared", {**_OF_AN_UTTERANCE, "text": STRING}),
        "description": "The answer to `clear`: what of the utterance was sent.",
    },
    "draining": {
        **_message("draining", {"seconds": INTEGER}),
        "description": "The server stops; the session may last so long.",
    },
    "session.done": _message("session.done"),
    "error": {
        **_message("error", {"error": object_schema({"message": STRING, "type": STRING})}),
        "description": "The end of the session, or a sentence that the voice cannot speak.",
    },
}
