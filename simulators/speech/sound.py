"""The sound of the simulated speech server: the embedded voice, in any format and at any rate."""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Final, NamedTuple

import numpy as np
import soxr

from speech.audio.encoding import AudioFormat, encode
from speech.audio.pcm import SAMPLE_RATE, samples
from speech.engines import Utterance
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


class Speaker:
    """Speaks text; each voice name has its own pitch.

    A text that was spoken recently gives the same samples again: espeak-ng itself varies a little.
    """

    def __init__(self) -> None:
        self._engine = Espeak(workers=1)
        self._said: OrderedDict[Spoken, bytes] = OrderedDict()

    async def speak(self, spoken: Spoken) -> bytes:
        """Return PCM (``speech.audio.pcm``). Raises ``EngineError``."""
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
        pcm = b"".join([piece async for piece in self._engine.speak(utterance)])
        if len(self._said) >= _REMEMBERED:
            self._said.popitem(last=False)
        # When a text was spoken twice at once, the first result is kept.
        return self._said.setdefault(spoken, pcm)

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
