"""What clients of the speech surface send: the body of ``POST /v1/audio/speech`` and the messages
of the WebSocket (speech contract, Endpoints). Plain values, no framework.

Whatever is wrong is an ``InvalidField`` that names the field and repeats nothing of what was sent.
Fields that are not modelled are ignored; ``null`` for an optional field means absent.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
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

MOST_VALUES: Final = 1000
"""Objects and arrays, and numbers with a fraction, of a body or message: those that are ignored."""

SLOWEST: Final = 0.25
FASTEST: Final = 4.0
"""Bounds of ``speed``, a factor on a voice's own pace (those of the public convention)."""

LONGEST_INSTRUCTIONS: Final = 4096
"""Code points of ``instructions``."""

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


class StreamFormat(StrEnum):
    """How the sound is wrapped: as it is, or in server-sent events."""

    AUDIO = "audio"
    SSE = "sse"


class SpeechRequest(msgspec.Struct, frozen=True):
    """A checked body of ``POST /v1/audio/speech``.

    ``speed`` is a factor on the voice's pace; ``instructions`` say how to speak, to engines that
    take such a text, and are empty where none were given.
    """

    voice: str
    input: str
    response_format: AudioFormat = AudioFormat.WAV
    speed: float = 1.0
    instructions: str = ""
    stream_format: StreamFormat = StreamFormat.AUDIO

    @classmethod
    def from_body(cls, body: bytes) -> SpeechRequest:
        """Raises ``InvalidField`` for the first field that is wrong."""
        fields = parse_object(body, _BODY_EXAMPLE, most_values=MOST_VALUES)
        return cls(
            voice=_voice(fields),
            input=_input(fields),
            response_format=_response_format(fields),
            speed=_speed(fields),
            instructions=_instructions(fields),
            stream_format=_stream_format(fields),
        )


class Start(msgspec.Struct, frozen=True):
    """Begins a session with a voice; ``speed`` and ``instructions`` as in ``SpeechRequest``."""

    voice: str
    response_format: AudioFormat
    speed: float = 1.0
    instructions: str = ""


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
    fields = parse_object(encoded, _MESSAGE_EXAMPLE, "message", most_values=MOST_VALUES)
    kind = fields.get("type")
    read = _MESSAGES.get(kind) if type(kind) is str else None
    if read is None:
        raise InvalidField(
            "'type' must be 'start', 'text', 'done', 'flush' or 'cancel'.", param="type"
        )
    return read(fields)


def _start(fields: dict[str, Any]) -> Start:
    return Start(_voice(fields), _response_format(fields), _speed(fields), _instructions(fields))


def _text(fields: dict[str, Any]) -> Text:
    text = _string(fields, "text", "the text to speak")
    _bounded(text, "text", LONGEST_INPUT, "Send it in several messages.")
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
    _bounded(text, "input", LONGEST_INPUT, "Send it in several requests.")
    return text


def _bounded(text: str, param: str, longest: int, advice: str) -> None:
    if len(text) > longest:
        raise InvalidField(
            f"'{param}' has {len(text)} characters, and at most {longest} are allowed. {advice}",
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


def _speed(fields: dict[str, Any]) -> float:
    speed = fields.get("speed")
    if speed is None:
        return 1.0
    # A bool is an int to Python, and none to JSON.
    if type(speed) not in (int, float) or not SLOWEST <= speed <= FASTEST:
        raise InvalidField(f"'speed' must be a number from {SLOWEST} to {FASTEST}.", param="speed")
    return float(speed)


def _instructions(fields: dict[str, Any]) -> str:
    if fields.get("instructions") is None:
        return ""
    text = _string(fields, "instructions", "how to speak")
    _bounded(text, "instructions", LONGEST_INSTRUCTIONS, "Send a shorter text.")
    return text if text.strip() else ""


def _stream_format(fields: dict[str, Any]) -> StreamFormat:
    named = fields.get("stream_format")
    if named is None:
        return StreamFormat.AUDIO
    try:
        return StreamFormat(named)
    except ValueError:
        raise InvalidField(
            "'stream_format' must be 'audio' or 'sse'.", param="stream_format"
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
