"""Errors of the speech surface in the words of the console's page."""

from __future__ import annotations

from typing import Final

import msgspec

from core.errors import ApiError
from speech.errors import MOST_CLONES, TooManyClones, UnknownVoice, UnreadableText, error_type

_FIELDS: Final = {
    "input": "The text",
    "text": "The text",
    "name": "The name",
    "word": "The word",
    "pronunciation": "The pronunciation",
    "alphabet": "IPA",
    "audio_b64": "The recording",
    "voice": "The voice",
    "speed": "The speed",
    "instructions": "The instruction text",
    "response_format": "The format",
}
"""The fields of the API as the page calls them."""

_OWN: Final[dict[type[ApiError], str]] = {
    UnknownVoice: "There is no such voice any more. Reload the page.",
    UnreadableText: "The voice can read no word of this text, so it spoke and charged nothing. "
    "Choose a voice of another language, or type words.",
    TooManyClones: f"You have {MOST_CLONES} clones, the most that an organization can have. "
    "Delete one first.",
}
_CONSENT: Final = "Tick the box: the speaker has to agree to have this voice cloned."


def in_words(error: ApiError) -> str:
    """The message of ``error`` with the page's names of fields."""
    for kind, message in _OWN.items():
        if isinstance(error, kind):
            return message
    if error.param == "consent":
        return _CONSENT
    name = error.param or ""
    message = error.message
    if name in _FIELDS:
        message = message.replace(f"'{name}'", _FIELDS[name])
    return message


def error_object(error: ApiError) -> dict[str, str]:
    """The speech contract's Error object in the page's words, with the field at fault."""
    return {"message": in_words(error), "type": error_type(error), "param": error.param or ""}


def error_body(error: ApiError) -> bytes:
    """The body of an error's HTTP response."""
    return msgspec.json.encode({"error": error_object(error)})
