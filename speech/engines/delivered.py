"""What speech servers deliver, turned into PCM (``speech.audio``): files, raw samples, events.

Nothing of it is trusted. The answer's own word about what it is (``Content-Type``, the first
bytes) counts more than the configuration, which says what was asked for.
"""

from __future__ import annotations

import binascii
import io
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import soundfile

from speech.audio import SAMPLE_WIDTH, Resampler, pcm_bytes, samples
from speech.engines import EngineError, EngineProtocolError
from speech.engines.delivered_wav import WavReader
from speech.wav import MAX_RATE, MIN_RATE
from svc_project.lib.sse import DONE, EventReader, FrameTooLarge

LARGEST_BODY: Final = 64 * 1024 * 1024
LONGEST_SECONDS: Final = 600.0

_LARGEST_EVENT: Final = 16 * 1024 * 1024
_HEAD_BYTES: Final = 64
_BLOCK_FRAMES: Final = 65_536
_MOST_CHANNELS: Final = 2

_WAV_TYPES: Final = frozenset(["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"])
_PCM_TYPES: Final = frozenset(["audio/pcm", "audio/x-pcm", "audio/l16", "audio/raw"])
_FILE_TYPES: Final = frozenset(
    [
        "audio/flac",
        "audio/x-flac",
        "audio/mpeg",
        "audio/mp3",
        "audio/ogg",
        "audio/opus",
        "application/ogg",
    ]
)
_FILE_FORMATS: Final = frozenset(["FLAC", "OGG", "MP3", "MPEG"])
_PRINTABLE: Final = frozenset([*range(0x20, 0x7F), *b"\t\r\n"])


class Reader(Protocol):
    """Takes an answer's bytes as they come, and gives PCM."""

    @property
    def complete(self) -> bool:
        """Whether the answer has said that it is over; what follows need not be read."""

    def feed(self, read: bytes) -> bytes:
        """The PCM that is ready, maybe none; raises ``EngineError``."""

    def finish(self) -> bytes:
        """The end of the sound, once the answer has ended; raises ``EngineError``."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is known of an answer before its first byte.

    ``asked`` is ``file``, ``pcm`` or ``sse``; ``sample_rate`` is that of raw PCM where the answer
    does not name one. ``ends_known``: a lost connection would be noticed.
    """

    asked: str
    sample_rate: int
    content_type: str = ""
    ends_known: bool = True

    @property
    def kind(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def is_text(self) -> bool:
        """Whether the answer says that it is no sound at all."""
        kind = self.kind
        return (
            kind.startswith(("text/", "application/json", "application/xml"))
            or kind.endswith(("+json", "+xml"))
        ) and kind != "text/event-stream"

    def number(self, name: str, default: int) -> int:
        """A parameter of the media type, such as ``rate``; raises ``EngineProtocolError``."""
        for parameter in self.content_type.split(";")[1:]:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == name:
                value = value.strip().strip('"')
                if not (value.isascii() and value.isdigit() and len(value) < 9):
                    raise EngineProtocolError(f"The answer's {name} is no number.")
                return int(value)
        return default


def reader_for(delivery: Delivery) -> Reader:
    """What reads the answer; raises ``EngineProtocolError`` where it cannot be sound."""
    if delivery.is_text:
        raise EngineProtocolError("The answer is text, not sound.")
    if delivery.kind == "text/event-stream":
        return EventsReader(delivery)
    if delivery.asked == "sse" and not delivery.kind.startswith("audio/"):
        return EventsReader(delivery)
    return SniffingReader(delivery)


class SniffingReader:
    """Looks at the first bytes to learn what it is that comes."""

    complete = False

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._head = b""
        self._reader: Reader | None = None

    def feed(self, read: bytes) -> bytes:
        if self._reader is not None:
            return self._reader.feed(read)
        self._head += read
        return self._begin() if len(self._head) >= _HEAD_BYTES else b""

    def finish(self) -> bytes:
        ready = self._begin() if self._reader is None else b""
        assert self._reader is not None  # noqa: S101 - _begin has made it; for the type checker
        return ready + self._reader.finish()

    def _begin(self) -> bytes:
        self._reader = _reader_by_head(self._head, self._delivery)
        head, self._head = self._head, b""
        return self._reader.feed(head)


def _reader_by_head(head: bytes, delivery: Delivery) -> Reader:
    kind = delivery.kind
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return WavReader(ends_known=delivery.ends_known)
    raw = kind in _PCM_TYPES or (delivery.asked != "file" and kind not in _FILE_TYPES | _WAV_TYPES)
    if head.startswith((b"fLaC", b"OggS", b"ID3")) or (not raw and _is_mpeg_frame(head)):
        return FileReader()
    if not raw:
        raise EngineProtocolError("The answer is no sound file that is known here.")
    if head and _PRINTABLE.issuperset(head):
        raise EngineProtocolError("The answer is text, not samples.")
    return PcmReader(delivery.number("rate", delivery.sample_rate), delivery.number("channels", 1))


def _is_mpeg_frame(head: bytes) -> bool:
    return len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0


class PcmReader:
    """Raw signed 16-bit little-endian samples, at any rate, of one channel or two."""

    complete = False

    def __init__(self, rate: int, channels: int = 1) -> None:
        """Raises ``EngineProtocolError`` for a rate or a number of channels that is not offered."""
        if not MIN_RATE <= rate <= MAX_RATE or not 1 <= channels <= _MOST_CHANNELS:
            raise EngineProtocolError("The answer names an impossible rate or number of channels.")
        self._resampler = Resampler(rate)
        self._channels = channels
        self._rest = b""

    def feed(self, read: bytes) -> bytes:
        read = self._rest + read
        whole = len(read) - len(read) % (SAMPLE_WIDTH * self._channels)
        frames, self._rest = read[:whole], read[whole:]
        if self._channels > 1 and frames:
            frames = _mean_of_channels(samples(frames).reshape(-1, self._channels))
        return self._resampler.piece(frames)

    def finish(self) -> bytes:
        if self._rest:
            raise EngineProtocolError("The samples end in the middle of one.")
        return self._resampler.finish()


class FileReader:
    """A FLAC, MP3 or Ogg file, decoded when it is complete."""

    complete = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, read: bytes) -> bytes:
        self._parts.append(read)
        return b""

    def finish(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        try:
            with soundfile.SoundFile(io.BytesIO(content)) as file:
                return _decoded(file)
        except (soundfile.SoundFileError, ValueError, OSError):
            raise EngineProtocolError("The sound file cannot be decoded.") from None


def _decoded(file: soundfile.SoundFile) -> bytes:
    if file.format not in _FILE_FORMATS or not MIN_RATE <= file.samplerate <= MAX_RATE:
        raise EngineProtocolError("The sound file has a form that is not known here.")
    if not 1 <= file.channels <= _MOST_CHANNELS:
        raise EngineProtocolError("The sound file has too many channels.")
    resampler = Resampler(file.samplerate)
    parts: list[bytes] = []
    frames = 0
    while len(block := file.read(_BLOCK_FRAMES, dtype="int16", always_2d=True)):
        frames += len(block)
        if frames > LONGEST_SECONDS * file.samplerate:
            raise EngineProtocolError("The sound file is too long.")
        parts.append(resampler.piece(_mean_of_channels(block)))
    return b"".join(parts) + resampler.finish()


def _mean_of_channels(frames: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> bytes:
    if frames.shape[1] == 1:
        return pcm_bytes(frames[:, 0])
    return pcm_bytes(np.rint(frames.mean(axis=1)).astype(np.int16))


class _Event(msgspec.Struct):
    """``speech.audio.delta`` has ``audio``; errors have many shapes, none of which is shown."""

    type: str = ""
    audio: str | None = None
    error: Any = None


class EventsReader:
    """Server-sent events: ``speech.audio.delta``, ``speech.audio.done``, ``speech.audio.error``.

    Events of other types are let pass.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._events = EventReader(_LARGEST_EVENT)
        inner = Delivery("sse", delivery.sample_rate, ends_known=True)
        self._sound = SniffingReader(inner)
        self.complete = False

    def feed(self, read: bytes) -> bytes:
        try:
            events = self._events.feed(read)
        except FrameTooLarge:
            raise EngineProtocolError("An event is too large.") from None
        return b"".join(self._take(event) for event in events)

    def finish(self) -> bytes:
        last = self._events.rest()
        ready = self._take(last) if last and not self.complete else b""
        if not self.complete:
            raise EngineProtocolError("The events end without speech.audio.done.")
        return ready + self._sound.finish()

    def _take(self, content: bytes) -> bytes:
        if self.complete:
            return b""
        if content.strip() == DONE:
            self.complete = True
            return b""
        try:
            event = msgspec.json.decode(content, type=_Event)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise EngineProtocolError("An event is no JSON object that is known here.") from None
        if event.type in ("speech.audio.error", "error") or event.error is not None:
            raise EngineError("The speech server reported an error in its events.")
        if event.type == "speech.audio.done":
            self.complete = True
        elif event.type == "speech.audio.delta":
            return self._delta(event.audio)
        return b""

    def _delta(self, audio: str | None) -> bytes:
        try:
            return self._sound.feed(binascii.a2b_base64(audio or "", strict_mode=True))
        except ValueError:
            raise EngineProtocolError("An event's audio is not base64.") from None
