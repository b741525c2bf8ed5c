"""The sound of the simulated speech server: the embedded voice, in any container and any rate."""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from typing import Final

import numpy as np
import soxr

from speech.audio import SAMPLE_RATE, samples
from speech.encoding import AudioFormat, encode
from speech.engines import Utterance
from speech.engines.espeak import Espeak

_PITCHES: Final = 13
_REMEMBERED: Final = 64
_UNKNOWN_SIZES: Final = {"zero": 0, "max": 0xFFFF_FFFF}
_FACTORS: Final = {"exact": 1.0, "double": 2.0, "half": 0.5}


class Speaker:
    """Speaks text; each name of a voice has a pitch of its own.

    What was said a short while ago is said again sample by sample: espeak-ng itself varies a little.
    """

    def __init__(self) -> None:
        self._engine = Espeak(workers=1)
        self._said: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    async def speak(self, text: str, voice: str) -> bytes:
        """PCM (``speech.audio``). Raises ``EngineError``."""
        if (said := self._said.get((text, voice))) is not None:
            return said
        hindi = any("\u0900" <= character <= "\u097f" for character in text)
        utterance = Utterance(
            text,
            "hi" if hindi else "en",
            "hi" if hindi else "en-us+f3",
            pitch=zlib.crc32(voice.encode()) % _PITCHES - _PITCHES // 2,
        )
        pcm = b"".join([piece async for piece in self._engine.speak(utterance)])
        if len(self._said) >= _REMEMBERED:
            self._said.popitem(last=False)
        # Of two that were spoken at once, the first one stays.
        return self._said.setdefault((text, voice), pcm)

    async def close(self) -> None:
        await self._engine.close()


def in_format(pcm: bytes, audio_format: AudioFormat, rate: int, channels: int, sizes: str) -> bytes:
    """``pcm`` as a file or raw samples of ``rate`` and ``channels``.

    The right one of two channels is half as loud. ``sizes`` is what a WAV header claims:
    ``exact``, ``zero``, ``max`` (0xFFFFFFFF), ``double`` or ``half``. Compressed files have the
    rate and channels of ``speech.audio``.
    """
    if audio_format not in (AudioFormat.WAV, AudioFormat.PCM):
        return encode(pcm, audio_format)
    signal = samples(pcm)
    if rate != SAMPLE_RATE:
        signal = soxr.resample(signal, SAMPLE_RATE, rate)
    if channels == 2:
        signal = np.stack([signal, signal // 2], axis=1)
    raw = signal.astype("<i2").tobytes()
    return raw if audio_format is AudioFormat.PCM else _header(raw, rate, channels, sizes) + raw


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
