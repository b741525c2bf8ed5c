"""Parses what clients of the speech surface send: the body of ``POST /v1/audio/speech`` and the
messages of the WebSocket (speech contract, Endpoints). Plain values, no framework.

Every mistake is an ``InvalidField`` that names the field and quotes nothing that was sent. Unknown
fields are ignored; ``null`` for an optional field means absent.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import msgspec

from core.asgi.json_object import kind_of, parse_object
from core.errors import InvalidField
from speech.audio.encoding import AudioFormat

LONGEST_INPUT: Final = 4096
"""Code points of ``input``, and of ``text`` in one message."""

LONGEST_SESSION: Final = 20_000
"""Code points of all texts of one WebSocket session, or of one utterance in a session that is kept
open; also of all its texts that wait to be spoken."""

MOST_UTTERANCES: Final = 100
"""Utterances of a session that wait to be spoken."""

LARGEST_MESSAGE: Final = 64 * 1024
"""Bytes of one WebSocket message. The longest text fits, each character as two ``\\u`` escapes."""

LARGEST_BODY: Final = 128 * 1024
"""Bytes of a request body: the longest ``input``, all in escapes, takes 49 152 of them; the rest is
left for ignored fields."""

MOST_VALUES: Final = 1000
"""The most objects and arrays, and numbers with a fraction, in ignored fields."""

SLOWEST: Final = 0.25
FASTEST: Final = 4.0
"""Bounds of ``speed``, a factor on a voice's own pace (as in the OpenAI API)."""

LONGEST_INSTRUCTIONS: Final = 4096
"""The most code points of ``instructions``."""

_BODY_EXAMPLE = '{"voice": "...", "input": "..."}'
_MESSAGE_EXAMPLE = '{"type": "text", "text": "..."}'
_FORMATS = ", ".join(f"'{name.value}'" for name in AudioFormat)


class StreamFormat(StrEnum):
    """How the sound is sent: as plain bytes, or in server-sent events."""

    AUDIO = "audio"
    SSE = "sse"


class Timestamps(StrEnum):
    """Of what a client is sent the times."""

    WORD = "word"


class SpeechRequest(msgspec.Struct, frozen=True):
    """A checked body of ``POST /v1/audio/speech``.

    ``speed`` is a factor on the voice's pace; ``instructions`` say how to speak, for engines that
    support them; empty means none. With ``timestamps`` the times of the words are sent as events.
    """

    voice: str
    input: str
    response_format: AudioFormat = AudioFormat.WAV
    speed: float = 1.0
    instructions: str = ""
    stream_format: StreamFormat = StreamFormat.AUDIO
    timestamps: Timestamps | None = None

    @classmethod
    def from_body(cls, body: bytes) -> SpeechRequest:
        """Parse a body. Raises ``InvalidField`` for the first wrong field."""
        fields = parse_object(body, _BODY_EXAMPLE, most_values=MOST_VALUES)
        request = cls(
            voice=_voice(fields),
            input=_input(fields),
            response_format=_response_format(fields),
            speed=_speed(fields),
            instructions=_instructions(fields),
            stream_format=_stream_format(fields),
            timestamps=_timestamps(fields),
        )
        if request.timestamps is not None and request.stream_format is not StreamFormat.SSE:
            raise InvalidField("'timestamps' needs 'stream_format': 'sse'.", param="timestamps")
        return request


class Start(msgspec.Struct, frozen=True):
    """Starts a session with a voice; ``speed`` and ``instructions`` as in ``SpeechRequest``.

    With ``keep_open``, ``Done`` ends an utterance and not the session, whose limits of text count
    for each utterance then. With ``timestamps`` each frame has a message with the times of its words
    before it. With ``ssml`` a text that begins with ``<speak`` is read as SSML.
    """

    voice: str
    response_format: AudioFormat
    speed: float = 1.0
    instructions: str = ""
    keep_open: bool = False
    timestamps: Timestamps | None = None
    ssml: bool = False


class Text(msgspec.Struct, frozen=True):
    """More text to speak; it may be empty or end anywhere."""

    text: str


class Done(msgspec.Struct, frozen=True):
    """Ends the text, of an utterance where the session is kept open."""


class Flush(msgspec.Struct, frozen=True):
    """Requests that all text so far is spoken, even an incomplete sentence."""


class Cancel(msgspec.Struct, frozen=True):
    """Drops the unspoken text and ends the session."""


class Clear(msgspec.Struct, frozen=True):
    """Drops the unspoken text of a session that is kept open, which goes on."""


class Close(msgspec.Struct, frozen=True):
    """Ends a session that is kept open, when its text so far is spoken."""


Message = Start | Text | Done | Flush | Cancel | Clear | Close


def parse_message(message: str) -> Message:
    """Parse a client's WebSocket text message. Raises ``InvalidField``."""
    try:
        encoded = message.encode()
    except UnicodeEncodeError:
        raise InvalidField("The message is not valid UTF-8. Send JSON in UTF-8.") from None
    fields = parse_object(encoded, _MESSAGE_EXAMPLE, "message", most_values=MOST_VALUES)
    kind = fields.get("type")
    read = _MESSAGES.get(kind) if type(kind) is str else None
    if read is None:
        raise InvalidField(
            "'type' must be 'start', 'text', 'done', 'flush' or 'cancel', "
            "or with 'keep_open' 'clear' or 'close'.",
            param="type",
        )
    return read(fields)


def _start(fields: dict[str, Any]) -> Start:
    return Start(
        voice=_voice(fields),
        response_format=_response_format(fields),
        speed=_speed(fields),
        instructions=_instructions(fields),
        keep_open=_is_set(fields, "keep_open"),
        timestamps=_timestamps(fields),
        ssml=_is_set(fields, "ssml"),
    )


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
    "clear": lambda fields: Clear(),
    "close": lambda fields: Close(),
}


def _voice(fields: dict[str, Any]) -> str:
    """Read ``voice``, a string or the object ``{"id": ...}`` that newer OpenAI SDKs may send."""
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
    # A bool is an int in Python, but not a number in JSON.
    if type(speed) not in (int, float) or not SLOWEST <= speed <= FASTEST:
        raise InvalidField(f"'speed' must be a number from {SLOWEST} to {FASTEST}.", param="speed")
    return float(speed)


def _instructions(fields: dict[str, Any]) -> str:
    if fields.get("instructions") is None:
        return ""
    text = _string(fields, "instructions", "how to speak")
    _bounded(text, "instructions", LONGEST_INSTRUCTIONS, "Send a shorter text.")
    return text if text.strip() else ""


def _is_set(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is None:
        return False
    if type(value) is not bool:
        raise InvalidField(f"'{name}' must be true or false.", param=name)
    return value


def _timestamps(fields: dict[str, Any]) -> Timestamps | None:
    named = fields.get("timestamps")
    if named is None:
        return None
    try:
        return Timestamps(named)
    except ValueError:
        raise InvalidField("'timestamps' must be 'word'.", param="timestamps") from None


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
    raise InvalidField(
        f"'{param}' must be a string ({meaning}), not {kind_of(value)}.", param=param
    )
