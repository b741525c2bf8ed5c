"""What clients of the speech surface send: the body of ``POST /v1/audio/speech`` and the messages
of the WebSocket (speech contract, Endpoints). Plain values, no framework.

Whatever is wrong is an ``InvalidField`` that names the field and repeats nothing of what was sent.
Fields that are not modelled are ignored; ``null`` for an optional field means absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from speech.encoding import AudioFormat
from svc_project.lib.errors import InvalidField
from svc_project.lib.json_object import parse_object

LONGEST_INPUT: Final = 4096
"""Code points of ``input``, and of ``text`` in one message."""

LONGEST_SESSION: Final = 20_000
"""Code points of all texts of one WebSocket session."""

LARGEST_MESSAGE: Final = 64 * 1024
"""Bytes of one WebSocket message. The longest text fits, each character as two ``\\u`` escapes."""

LARGEST_BODY: Final = 128 * 1024
"""Bytes of a request body: the longest ``input`` all in escapes takes 49 152 of them, and fields
that are ignored may be as long again."""

_BODY_EXAMPLE = '{"voice": "...", "input": "..."}'
_MESSAGE_EXAMPLE = '{"type": "text", "text": "..."}'
_FORMATS = ", ".join(f"'{name.value}'" for name in AudioFormat)
_KINDS = {
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    list: "an array",
    dict: "an object",
}


class SpeechRequest(msgspec.Struct, frozen=True):
    """A checked body of ``POST /v1/audio/speech``."""

    voice: str
    input: str
    response_format: AudioFormat = AudioFormat.WAV

    @classmethod
    def from_body(cls, body: bytes) -> SpeechRequest:
        """Raises ``InvalidField`` for the first field that is wrong."""
        fields = parse_object(body, _BODY_EXAMPLE)
        return cls(
            voice=_voice(fields),
            input=_input(fields),
            response_format=_response_format(fields),
        )


class Start(msgspec.Struct, frozen=True):
    """Begins a session with a voice."""

    voice: str
    response_format: AudioFormat


class Text(msgspec.Struct, frozen=True):
    """More text to speak; it may be empty or end anywhere."""

    text: str


class Done(msgspec.Struct, frozen=True):
    """No more text will come."""


class Flush(msgspec.Struct, frozen=True):
    """Speak what has come so far, complete sentence or not."""


class Cancel(msgspec.Struct, frozen=True):
    """Drop what was not spoken yet and end the session."""


Message = Start | Text | Done | Flush | Cancel


def parse_message(message: str) -> Message:
    """The message that a client sent as WebSocket text. Raises ``InvalidField``."""
    try:
        encoded = message.encode()
    except UnicodeEncodeError:
        raise InvalidField("The message is not valid UTF-8. Send JSON in UTF-8.") from None
    fields = parse_object(encoded, _MESSAGE_EXAMPLE, "message")
    kind = fields.get("type")
    read = _MESSAGES.get(kind) if type(kind) is str else None
    if read is None:
        raise InvalidField(
            "'type' must be 'start', 'text', 'done', 'flush' or 'cancel'.", param="type"
        )
    return read(fields)


def _start(fields: dict[str, Any]) -> Start:
    return Start(_voice(fields), _response_format(fields))


def _text(fields: dict[str, Any]) -> Text:
    text = _string(fields, "text", "the text to speak")
    _bounded(text, "text", "Send it in several messages.")
    return Text(text)


_MESSAGES: dict[str, Callable[[dict[str, Any]], Message]] = {
    "start": _start,
    "text": _text,
    "done": lambda fields: Done(),
    "flush": lambda fields: Flush(),
    "cancel": lambda fields: Cancel(),
}


def _voice(fields: dict[str, Any]) -> str:
    """``voice`` as a string, or as the object ``{"id": ...}`` that newer OpenAI SDKs send too."""
    voice = fields.get("voice")
    if type(voice) is dict:
        return _filled(_string(voice, "id", "a voice's id", "voice.id"), "voice.id")
    return _filled(_string(fields, "voice", "the id of a voice from GET /v1/models"), "voice")


def _filled(value: str, param: str) -> str:
    if not value.strip():
        raise InvalidField(
            f"'{param}' is blank. Name a voice; GET /v1/models lists them.", param=param
        )
    return value


def _input(fields: dict[str, Any]) -> str:
    text = _string(fields, "input", "the text to speak")
    if not text.strip():
        raise InvalidField("'input' is blank. Send the text to speak.", param="input")
    _bounded(text, "input", "Send it in several requests.")
    return text


def _bounded(text: str, param: str, advice: str) -> None:
    if len(text) > LONGEST_INPUT:
        raise InvalidField(
            f"'{param}' has {len(text)} characters, and at most {LONGEST_INPUT} are allowed. "
            f"{advice}",
            param=param,
        )


def _response_format(fields: dict[str, Any]) -> AudioFormat:
    named = fields.get("response_format")
    if named is None:
        return AudioFormat.WAV
    try:
        return AudioFormat(named)
    except ValueError:
        raise InvalidField(
            f"'response_format' must be one of {_FORMATS}.", param="response_format"
        ) from None


def _string(fields: dict[str, Any], name: str, meaning: str, param: str | None = None) -> str:
    param = param or name
    value = fields.get(name)
    if type(value) is str:
        return value
    if name not in fields:
        raise InvalidField(f"'{param}' is required: {meaning}, as a string.", param=param)
    kind = _KINDS.get(type(value), "a number")
    raise InvalidField(f"'{param}' must be a string ({meaning}), not {kind}.", param=param)
