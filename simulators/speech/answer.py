"""Sends one spoken answer, with its faults: the embedded voice, in any format and at any rate."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from base64 import b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import soxr

from simulators.serving import Broken, break_connection, respond
from simulators.speech.faults import Faults, SpeechFault
from simulators.speech.options import Directive
from simulators.speech.requests_log import SpeechEntry
from speech.audio.encoding import AudioFormat, encode
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH, samples
from speech.engines import SpokenWord, Utterance
from speech.engines.espeak.engine import Espeak

_PITCHES: Final = 13
_REMEMBERED: Final = 64
_UNKNOWN_SIZES: Final = {"zero": 0, "max": 0xFFFF_FFFF}
_FACTORS: Final = {"exact": 1.0, "double": 2.0, "half": 0.5}


class Spoken(NamedTuple):
    """A text, its voice, and the speed factor."""

    text: str
    voice: str
    rate: float = 1.0


class Said(NamedTuple):
    """PCM (``speech.audio.pcm``) and the words in it."""

    pcm: bytes
    words: tuple[SpokenWord, ...]


class Speaker:
    """Speaks text; each voice name has its own pitch.

    A text that was spoken recently gives the same samples again: espeak-ng itself varies a little.
    """

    def __init__(self) -> None:
        self._engine = Espeak(workers=1)
        self._said: OrderedDict[Spoken, Said] = OrderedDict()

    async def speak(self, spoken: Spoken) -> Said:
        """Speak a text. Raises ``EngineError``."""
        if (said := self._said.get(spoken)) is not None:
            return said
        hindi = any("\u0900" <= character <= "\u097f" for character in spoken.text)
        utterance = Utterance(
            spoken.text,
            "hi" if hindi else "en",
            "hi" if hindi else "en-us+f3",
            rate=spoken.rate,
            pitch=zlib.crc32(spoken.voice.encode()) % _PITCHES - _PITCHES // 2,
        )
        pieces = [piece async for piece in self._engine.speak_timed(utterance)]
        said = Said(
            b"".join(piece for piece in pieces if isinstance(piece, bytes)),
            tuple(piece for piece in pieces if isinstance(piece, SpokenWord)),
        )
        if len(self._said) >= _REMEMBERED:
            self._said.popitem(last=False)
        # When a text was spoken twice at once, the first result is kept.
        return self._said.setdefault(spoken, said)

    async def close(self) -> None:
        await self._engine.close()


def in_format(pcm: bytes, audio_format: AudioFormat, rate: int, channels: int, sizes: str) -> bytes:
    """Convert ``pcm`` to a file or raw samples of ``rate`` and ``channels``.

    The right one of two channels is half as loud. ``sizes`` are the sizes in a WAV header:
    ``exact``, ``zero``, ``max`` (0xFFFFFFFF), ``double`` or ``half``. Compressed files have the
    rate and channels of ``speech.audio.pcm``; a FLAC file of size ``zero`` or ``max`` has no length,
    like one that was written into a pipe.
    """
    if audio_format not in (AudioFormat.WAV, AudioFormat.PCM):
        (file,) = encode([pcm], audio_format)
        is_unknown = audio_format is AudioFormat.FLAC and sizes in _UNKNOWN_SIZES
        return without_length(file) if is_unknown else file
    signal = samples(pcm)
    if rate != SAMPLE_RATE:
        signal = soxr.resample(signal, SAMPLE_RATE, rate)
    if channels == 2:
        signal = np.stack([signal, signal // 2], axis=1)
    raw = signal.astype("<i2").tobytes()
    return raw if audio_format is AudioFormat.PCM else _header(raw, rate, channels, sizes) + raw


def without_length(flac: bytes) -> bytes:
    """Make a FLAC file as a program writes it that cannot seek to its beginning (RFC 9639, 8.2).

    STREAMINFO, which comes first, has no frame sizes, no number of samples and no MD5 sum.
    """
    block = bytearray(flac[:42])
    block[12:18] = bytes(6)
    block[21] &= 0xF0
    block[22:42] = bytes(20)
    return bytes(block) + flac[42:]


def _header(raw: bytes, rate: int, channels: int, sizes: str) -> bytes:
    frame = 2 * channels
    size = _UNKNOWN_SIZES.get(sizes)
    if size is None:
        size = int(len(raw) / frame * _FACTORS[sizes]) * frame
    riff = size if sizes in _UNKNOWN_SIZES else size + 36
    return (
        b"RIFF"
        + struct.pack("<I", riff)
        + b"WAVEfmt "
        + struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * frame, frame, 16)
        + b"data"
        + struct.pack("<I", size)
    )


ELSEWHERE: Final = b"http://127.0.0.1:1/v1/audio/speech"
NASTY: Final = (
    b"<html><body><h1>Internal error</h1><pre>Traceback (most recent call last):\n"
    b'  File "/srv/tts/app.py", line 7, in speak\n'
    b"RuntimeError: token sk-upstream-secret-0123456789 rejected at http://10.0.0.5:9100\n"
    b"</pre></body></html>"
)
"""An internal error page of a server; no part of it may reach a client."""

_HUGE_PIECE: Final = bytes([0x10, 0x20]) * 32_768
_JSON_ERROR: Final = {"error": {"message": NASTY.decode(), "type": "server_error"}}
_LARGEST_TIMES: Final = 4096
_SSE: Final = b"text/event-stream; charset=utf-8"


class Framing(Enum):
    """How the body is sent."""

    WHOLE = "with its length"
    CHUNKED = "in chunks"
    EVENTS = "as server-sent events"


@dataclass(slots=True)
class Answer:
    """``send`` is ASGI's; ``transport`` is the connection under it, for faults that break it."""

    entry: SpeechEntry
    body: bytes
    content_type: bytes
    framing: Framing
    directive: Directive
    faults: Faults
    delay: float
    send: Any
    transport: asyncio.Transport
    more_headers: tuple[tuple[bytes, bytes], ...] = ()

    async def deliver(self) -> None:
        """Send the answer, changed by its faults. Raises ``Broken`` when a fault ended it."""
        await self._apply_early_faults()
        await asyncio.sleep(self.delay)
        if SpeechFault.UNFRAMED in self.faults:
            await self._unframed()
        headers = [(b"content-type", _SSE if self._by_events else self._typed())]
        if self.directive.header_rate is not None:
            headers.append((b"x-sample-rate", str(self.directive.header_rate).encode()))
        if self.framing is Framing.WHOLE and SpeechFault.HUGE not in self.faults:
            headers.append((b"content-length", str(len(self.body)).encode()))
        headers += self.more_headers
        if SpeechFault.COMPRESSED in self.faults:
            headers.append((b"content-encoding", b"gzip"))
        await self.send({"type": "http.response.start", "status": 200, "headers": headers})
        async for piece in self._pieces():
            await self._write(piece)
        await self.send({"type": "http.response.body", "body": b""})

    @property
    def _by_events(self) -> bool:
        return self.framing is Framing.EVENTS

    def _typed(self) -> bytes:
        rate = self.directive.type_rate
        return self.content_type if rate is None else self.content_type + b";rate=%d" % rate

    async def _apply_early_faults(self) -> None:
        faults = self.faults
        await asyncio.sleep(faults.number(SpeechFault.SLOW_HEADER) or 0)
        if (status := faults.number(SpeechFault.STATUS)) is not None:
            self.entry.status = int(status)
            await respond(self.send, int(status), NASTY, b"text/html")
        elif SpeechFault.REDIRECT in faults:
            self.entry.status = 302
            await respond(self.send, 302, b"", extra=((b"location", ELSEWHERE),))
        elif SpeechFault.HTML in faults:
            await respond(self.send, 200, NASTY, b"text/html")
        elif SpeechFault.JSON in faults:
            await respond(self.send, 200, _JSON_ERROR)
        elif SpeechFault.EMPTY in faults:
            await respond(self.send, 200, b"", self.content_type)
        else:
            for name in (SpeechFault.CUT, SpeechFault.RESET):
                if faults.early(name):
                    break_connection(self.transport, reset=name is SpeechFault.RESET)
            if faults.early(SpeechFault.HANG):
                await asyncio.Event().wait()
            return
        raise Broken

    async def _unframed(self) -> None:
        """Send an HTTP/1.0 style answer, which ends when the connection closes."""
        number = self.faults.number(SpeechFault.UNFRAMED)
        content = self.body if number is None else self.body[: int(number)]
        head = b"HTTP/1.1 200 OK\r\ncontent-type: " + self.content_type
        self.transport.write(head + b"\r\nconnection: close\r\n\r\n" + content)
        self.entry.sent_bytes = len(content)
        break_connection(self.transport, reset=False)

    async def _pieces(self) -> AsyncIterator[bytes]:
        size = self.directive.piece
        seconds = size / (SAMPLE_RATE * SAMPLE_WIDTH)
        pause = seconds / self.directive.pace if self.directive.pace else 0.0
        for number, at in enumerate(range(0, len(self.body), size)):
            if self._by_events and self.faults.number(SpeechFault.ERROR_EVENT) == number:
                yield _event({"type": "speech.audio.error", **_JSON_ERROR})
                return
            piece = self.body[at : at + size]
            yield _delta(piece) if self._by_events else piece
            await asyncio.sleep(pause)
        while SpeechFault.HUGE in self.faults:
            yield _delta(_HUGE_PIECE) if self._by_events else _HUGE_PIECE
            await asyncio.sleep(
                0
            )  # send() to a disconnected client never waits: allow cancellation
        if self._by_events:
            if SpeechFault.BAD_EVENT in self.faults:
                yield b"data: {not json\n\n"
            if SpeechFault.NO_DONE not in self.faults:
                yield _event({"type": "speech.audio.done", "usage": {"output_tokens": 1}})

    async def _write(self, piece: bytes) -> None:
        for name in (SpeechFault.CUT, SpeechFault.RESET, SpeechFault.HANG):
            number = self.faults.number(name)
            if number is None or self.entry.sent_bytes + len(piece) <= number:
                continue
            await self._send(piece[: int(number) - self.entry.sent_bytes])
            if name is SpeechFault.HANG:
                await asyncio.Event().wait()
            await asyncio.sleep(0)  # send the last bytes before a reset drops them
            break_connection(self.transport, reset=name is SpeechFault.RESET)
        await self._send(piece)

    async def _send(self, piece: bytes) -> None:
        await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        self.entry.sent_bytes += len(piece)


def word_header(words: Sequence[SpokenWord]) -> tuple[tuple[bytes, bytes], ...]:
    """The header with the times of words, as vLLM-Omni sends it; without them above 4 KB."""
    times = [
        {"word": each.text, "start_ms": round(each.start * 1000), "end_ms": round(each.end * 1000)}
        for each in words
    ]
    value = json.dumps(times).encode()
    if len(value) > _LARGEST_TIMES:
        return ((b"x-word-timestamps-omitted", b"too large"),)
    return ((b"x-word-timestamps", value),)


def captions(sound: bytes, content_type: bytes, words: Sequence[SpokenWord]) -> bytes:
    """The answer of Kokoro-FastAPI's captioned speech."""
    times = [{"word": each.text, "start_time": each.start, "end_time": each.end} for each in words]
    return msgspec.json.encode(
        {
            "audio": b64encode(sound).decode(),
            "audio_format": content_type.decode(),
            # Signs are words of their own there.
            "timestamps": [*times, {"word": ".", "start_time": 0.0, "end_time": 0.0}],
        }
    )


def _delta(piece: bytes) -> bytes:
    return _event({"type": "speech.audio.delta", "audio": b64encode(piece).decode()})


def _event(content: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(content) + b"\n\n"
