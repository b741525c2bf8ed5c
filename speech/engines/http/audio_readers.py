"""Readers that decode answers of speech servers to PCM (``speech.audio.pcm``).

Answers are files, raw samples or events, and are not trusted. What the answer says of itself
(``Content-Type``, the first bytes) overrides the configuration, which says what was requested.
"""

from __future__ import annotations

import binascii
import io
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import soundfile

from core.asgi.sse import DONE, EventReader, FrameTooLarge
from speech.audio.pcm import (
    SAMPLE_RATE,
    SAMPLE_WIDTH,
    SHORTEST_SECONDS,
    Resampler,
    pcm_bytes,
    samples,
    silence,
)
from speech.audio.wav import MAX_RATE, MIN_RATE
from speech.engines import EngineError, EngineProtocolError, SpokenWord
from speech.engines.http.wav_reader import WavReader
from speech.engines.http.word_times import CAPTIONS, captions

LONGEST_SECONDS: Final = 600.0
MOST_CHANNELS: Final = 2

_BLOCK_FRAMES: Final = 65_536
_FORMATS: Final = frozenset(["FLAC", "OGG", "MP3", "MPEG"])
_UNKNOWN_LENGTH: Final = 1 << 62
"""libsndfile gives a FLAC file without a length more frames than this."""


class FileReader:
    """A FLAC, MP3 or Ogg file."""

    complete = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, read: bytes) -> bytes:
        """Keep ``read`` and return nothing: the file is decoded at its end."""
        self._parts.append(read)
        return b""

    def finish(self) -> bytes:
        """Decode the file. Raises ``EngineProtocolError``."""
        content = b"".join(self._parts)
        self._parts.clear()
        try:
            with _Piped(io.BytesIO(content)) as file:
                return _decoded(file)
        except (soundfile.SoundFileError, ValueError, OSError):
            raise EngineProtocolError("The audio file cannot be decoded.") from None


class _Piped(soundfile.SoundFile):  # type: ignore[misc]  # soundfile carries no types
    """A file that is read without seeking.

    soundfile seeks after each block of a seekable file. libsndfile cannot seek in a FLAC file that
    was written into a pipe, because its header gives no length.
    """

    def seekable(self) -> bool:
        return False


def _decoded(file: soundfile.SoundFile) -> bytes:
    if file.format not in _FORMATS or not MIN_RATE <= file.samplerate <= MAX_RATE:
        raise EngineProtocolError("The audio file has an unsupported format or sample rate.")
    if not 1 <= file.channels <= MOST_CHANNELS:
        raise EngineProtocolError("The audio file has too many channels.")
    resampler = Resampler(file.samplerate)
    parts: list[bytes] = []
    frames = 0
    while len(block := file.read(_BLOCK_FRAMES, dtype="int16", always_2d=True)):
        frames += len(block)
        if frames > LONGEST_SECONDS * file.samplerate:
            raise EngineProtocolError("The audio file is too long.")
        parts.append(resampler.piece(mean_of_channels(block)))
    if file.format == "FLAC" and frames < file.frames < _UNKNOWN_LENGTH:
        raise EngineProtocolError("The audio file is truncated.")
    return b"".join(parts) + resampler.finish()


def mean_of_channels(frames: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> bytes:
    """Mix ``frames`` down to PCM of one channel, the mean of theirs."""
    if frames.shape[1] == 1:
        return pcm_bytes(frames[:, 0])
    return pcm_bytes(np.rint(frames.mean(axis=1)).astype(np.int16))


LARGEST_BODY: Final = 64 * 1024 * 1024

_LARGEST_EVENT: Final = 16 * 1024 * 1024
_HEAD_BYTES: Final = 64

_WAV_TYPES: Final = frozenset(["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"])
_PCM_TYPES: Final = frozenset(
    ["audio/pcm", "audio/pcm_s16le", "audio/x-pcm", "audio/l16", "audio/raw"]
)
_OTHER_SAMPLES: Final = "audio/pcm_"
"""Prefix of the media types of other sample formats, such as ``audio/pcm_f32le``."""
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
_PRINTABLE: Final = frozenset([*range(0x20, 0x7F), *b"\t\r\n"])


class Reader(Protocol):
    """Decodes an answer's bytes to PCM as they come."""

    @property
    def complete(self) -> bool:
        """Whether the answer has marked its end; the rest need not be read."""

    def feed(self, read: bytes) -> bytes:
        """Decode ``read`` and return the PCM that is ready, maybe none. Raises ``EngineError``."""

    def finish(self) -> bytes:
        """Return the rest of the PCM after the answer's end. Raises ``EngineError``."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the configuration and the headers say of an answer, before its first byte.

    ``asked`` is ``file``, ``pcm``, ``sse`` or ``captions``; ``sample_rate`` is that of raw PCM when
    the answer names none. ``rate_header`` is the value of a header for it, or empty. ``ends_known``:
    the answer marks its end, so a lost connection is noticed.
    """

    asked: str
    sample_rate: int
    content_type: str = ""
    rate_header: str = ""
    ends_known: bool = True

    @property
    def kind(self) -> str:
        """The media type without its parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()

    @property
    def is_text(self) -> bool:
        """Whether the media type is one of text, not of sound."""
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
                return _whole_number(value.strip().strip('"'), name)
        return default

    def rate(self) -> int:
        """Samples a second of raw PCM, as the answer says, else as configured.

        Raises ``EngineProtocolError`` for an answer that names two different rates: the wrong one
        would change the pitch.
        """
        by_type = self.number("rate", 0)
        by_header = _whole_number(self.rate_header.strip(), "rate") if self.rate_header else 0
        if by_type and by_header and by_type != by_header:
            raise EngineProtocolError(
                f"The answer names two sample rates: {by_type} in its type, {by_header} in a header."
            )
        return by_type or by_header or self.sample_rate


def _whole_number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        raise EngineProtocolError(f"The answer's {name} is not a number.")
    return int(text)


class CaptionsReader:
    """JSON with a sound in base64 and the times of its words (Kokoro-FastAPI)."""

    complete = False

    def __init__(self, sample_rate: int, text: str, most_bytes: int) -> None:
        self._sample_rate = sample_rate
        self._text = text
        self._room = most_bytes
        self._parts: list[bytes] = []
        self.words: list[SpokenWord] = []

    def feed(self, read: bytes) -> bytes:
        """Keep ``read`` and return nothing: the answer is decoded at its end.

        Raises ``EngineProtocolError`` for an answer that is too large.
        """
        self._room -= len(read)
        if self._room < 0:
            raise EngineProtocolError("The answer is too large for the text.")
        self._parts.append(read)
        return b""

    def finish(self) -> bytes:
        """Decode the sound, and note the words. Raises ``EngineProtocolError``."""
        sound, kind, self.words = captions(b"".join(self._parts), self._text)
        reader = SniffingReader(Delivery("file", self._sample_rate, kind))
        return reader.feed(sound) + reader.finish()


def reader_for(delivery: Delivery) -> Reader:
    """The reader for the answer. Raises ``EngineProtocolError`` when the answer is text."""
    if delivery.is_text:
        raise EngineProtocolError("The answer is text, not sound.")
    has_events = delivery.asked == "sse" and not delivery.kind.startswith("audio/")
    if has_events or delivery.kind == "text/event-stream":
        return EventsReader(delivery)
    return SniffingReader(delivery)


class SniffingReader:
    """Chooses the reader by the first bytes of the answer."""

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
    if kind.startswith(_OTHER_SAMPLES) and kind not in _PCM_TYPES:
        raise EngineProtocolError("The answer's samples are not signed 16-bit little-endian.")
    if not raw:
        raise EngineProtocolError("Unsupported audio format.")
    if head and _PRINTABLE.issuperset(head):
        raise EngineProtocolError("The answer is text, not samples.")
    return PcmReader(delivery.rate(), delivery.number("channels", 1))


def _is_mpeg_frame(head: bytes) -> bool:
    return len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0


class PcmReader:
    """Raw signed 16-bit little-endian samples, at any rate, of one channel or two."""

    complete = False

    def __init__(self, rate: int, channels: int = 1) -> None:
        """Raises ``EngineProtocolError`` for an unsupported rate or number of channels."""
        if not MIN_RATE <= rate <= MAX_RATE or not 1 <= channels <= MOST_CHANNELS:
            raise EngineProtocolError("Unsupported sample rate or number of channels.")
        self._resampler = Resampler(rate)
        self._channels = channels
        self._rest = b""

    def feed(self, read: bytes) -> bytes:
        read = self._rest + read
        whole = len(read) - len(read) % (SAMPLE_WIDTH * self._channels)
        frames, self._rest = read[:whole], read[whole:]
        if self._channels > 1 and frames:
            frames = mean_of_channels(samples(frames).reshape(-1, self._channels))
        return self._resampler.piece(frames)

    def finish(self) -> bytes:
        if self._rest:
            raise EngineProtocolError("The answer ends in the middle of a sample.")
        return self._resampler.finish()


class _Event(msgspec.Struct):
    """An event; ``speech.audio.delta`` has ``audio``. Errors have many shapes and are not shown."""

    type: str = ""
    audio: str | None = None
    error: Any = None


class EventsReader:
    """Server-sent events: ``speech.audio.delta``, ``speech.audio.done``, ``speech.audio.error``.

    Events of other types are ignored.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._events = EventReader(_LARGEST_EVENT)
        inner = Delivery("sse", delivery.sample_rate, rate_header=delivery.rate_header)
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
            raise EngineProtocolError("An event is not a JSON object of a known shape.") from None
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


_BASE_SECONDS, _SECONDS_PER_CHARACTER = 20.0, 1.0
_SILENT_PEAK: Final = 2
_CAPTIONED: Final = 4
"""Bytes of an answer with captions for one of the longest sound: base64 at up to three times the size."""


class AudioCheck:
    """Decodes one answer to PCM and rejects sound that cannot be the text.

    No PCM is returned before it is audible, so that silence in place of words fails before anything
    was sent. All methods raise ``EngineProtocolError``, or ``EngineError`` for an error that the
    server itself reports.
    """

    def __init__(self, delivery: Delivery, text: str, rate: float = 1.0) -> None:
        """``rate`` is the requested factor on the voice's speed: slow speech may be longer."""
        self._worded = any(character.isalnum() for character in text)
        longest = (_BASE_SECONDS + _SECONDS_PER_CHARACTER * len(text)) / min(1.0, rate)
        self._room = round(min(LONGEST_SECONDS, longest) * SAMPLE_RATE) * SAMPLE_WIDTH
        self._reader: Reader
        if delivery.asked == CAPTIONS:
            self._reader = CaptionsReader(delivery.sample_rate, text, _CAPTIONED * self._room)
        else:
            self._reader = reader_for(delivery)
        self._received = 0
        self._held = bytearray()
        self._peak = 0
        self._sounded = False

    @property
    def complete(self) -> bool:
        """Whether the answer has marked its end; the rest need not be read."""
        return self._reader.complete

    @property
    def words(self) -> list[SpokenWord]:
        """The words whose times the answer has, known at its end."""
        return self._reader.words if isinstance(self._reader, CaptionsReader) else []

    def feed(self, read: bytes) -> bytes:
        """Decode ``read`` and return the PCM that is ready; it may be empty."""
        self._received += len(read)
        if self._received > LARGEST_BODY:
            raise EngineProtocolError("The answer is too large.")
        return self._passed(self._reader.feed(read))

    def finish(self) -> bytes:
        """Return the rest. Compressed files are decoded here, which blocks."""
        if not self._received:
            raise EngineProtocolError("The answer is empty.")
        rest = self._passed(self._reader.finish())
        if self._sounded:
            return rest
        if self._worded:
            raise EngineProtocolError("The answer is silent.")
        return bytes(self._held) or silence(SHORTEST_SECONDS)

    def _passed(self, pcm: bytes) -> bytes:
        self._room -= len(pcm)
        if self._room < 0:
            raise EngineProtocolError("The sound is too long for the text.")
        if self._sounded or not pcm:
            return pcm
        self._held += pcm
        self._peak = max(self._peak, int(np.abs(samples(pcm).astype(np.int32)).max()))
        enough = len(self._held) >= SHORTEST_SECONDS * SAMPLE_RATE * SAMPLE_WIDTH
        if self._peak <= _SILENT_PEAK or not enough:
            return b""
        self._sounded = True
        ready = bytes(self._held)
        self._held.clear()
        return ready
