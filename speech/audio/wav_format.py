"""The format chunk of WAV files, and the samples behind it.

The layout is Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (RIFF, WAVE)
with ``WAVEFORMATEXTENSIBLE``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_RATE = 8_000
MAX_RATE = 192_000
PLACEHOLDER_SIZE = 0x7FFF_F000
"""Sizes from here on are placeholders of programs that write into a pipe."""

Samples = npt.NDArray[np.float32]

_PCM, _FLOAT, _EXTENSIBLE = 0x0001, 0x0003, 0xFFFE
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_ENCODINGS = {
    0x0002: "ADPCM",
    0x0006: "A-law",
    0x0007: "mu-law",
    0x0011: "ADPCM",
    0x0031: "GSM",
    0x0050: "MPEG audio",
    0x0055: "MP3",
    0x00FF: "AAC",
}


class UnusableClip(Exception):
    """The clip cannot be a reference; ``reason`` is a sentence for the client."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class WavFormat:
    """The format chunk of a WAV file; ``rate`` in frames a second."""

    floating: bool
    channels: int
    rate: int
    bits: int

    @property
    def frame_bytes(self) -> int:
        """Bytes of one frame: a sample of each channel."""
        return self.channels * self.bits // 8


def parse_format(layout: bytes) -> WavFormat:
    """Parse the first bytes of a ``fmt `` chunk (40 are enough).

    Raises ``UnusableClip`` for anything except PCM of 8 to 32 bits or float of 32 or 64, 1 or 2
    channels, ``MIN_RATE`` to ``MAX_RATE``.
    """
    if len(layout) < 16:
        raise UnusableClip("the WAV file is damaged: its format chunk is too short.")
    tag, channels, rate, _, frame_bytes, bits = struct.unpack_from("<HHIIHH", layout)
    if tag == _EXTENSIBLE:
        if len(layout) < 40 or layout[26:40] != _GUID_TAIL:
            raise UnusableClip("the WAV file has an unknown extensible format; use PCM or float.")
        (tag,) = struct.unpack_from("<H", layout, 24)
    if tag not in (_PCM, _FLOAT):
        encoding = _ENCODINGS.get(tag, f"format 0x{tag:04x}")
        raise UnusableClip(f"its encoding is {encoding}; save it as PCM or float.")
    if bits not in ((32, 64) if tag == _FLOAT else (8, 16, 24, 32)):
        raise UnusableClip(
            f"it has {bits} bits a sample; use 8, 16, 24 or 32 (PCM), or 32 or 64 (float)."
        )
    if channels not in (1, 2):
        raise UnusableClip(f"it has {channels} channels; use 1 or 2.")
    if not MIN_RATE <= rate <= MAX_RATE:
        raise UnusableClip(f"its sample rate is {rate} Hz; use {MIN_RATE} to {MAX_RATE} Hz.")
    form = WavFormat(tag == _FLOAT, channels, rate, bits)
    if frame_bytes != form.frame_bytes:
        raise UnusableClip("the WAV file is damaged: its frame size does not fit its format.")
    return form


def decode_samples(data: memoryview, form: WavFormat) -> Samples:
    """Decode whole frames to float32, channels interleaved, integers scaled to -1.0..1.0.

    Floats are not changed, and may be beyond that range or not finite.
    """
    if form.floating:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.frombuffer(data, f"<f{form.bits // 8}").astype(np.float32)
    if form.bits == 8:
        return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(
            128
        )
    if form.bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.view("<i4").ravel().astype(np.float32) / np.float32(2**31)
    scale = np.float32(2 ** (form.bits - 1))
    return np.frombuffer(data, f"<i{form.bits // 8}").astype(np.float32) / scale
