"""WAV files for tests, made byte by byte so that any field can be wrong."""

from __future__ import annotations

import base64
import struct
from functools import cache

import numpy as np
import numpy.typing as npt

PCM, ADPCM, FLOAT, A_LAW, MU_LAW, MP3, EXTENSIBLE = 1, 2, 3, 6, 7, 0x55, 0xFFFE
GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")

Wave = npt.NDArray[np.float64]


@cache
def voice(seconds: float = 5.0, rate: int = 16_000, f0: float = 120.0) -> Wave:
    """A buzz with a voice's pitch, alternately loud and soft; the peak is 0.5. Read-only."""
    t = np.arange(round(seconds * rate)) / rate
    harmonics = range(1, min(30, int(0.45 * rate / f0)))
    buzz = sum((np.sin(2 * np.pi * f0 * k * t + k * k) / k for k in harmonics), np.zeros(len(t)))
    buzz *= 0.6 + 0.4 * np.sin(2 * np.pi * 3 * t)
    scaled: Wave = buzz / np.abs(buzz).max() * 0.5
    scaled.flags.writeable = False
    return scaled


def encoded(wave: Wave, bits: int = 16, *, floating: bool = False) -> bytes:
    """Encode ``wave`` (one row a frame, or one dimension) as the samples of a WAV file."""
    flat = wave.ravel()
    if floating:
        return flat.astype(f"<f{bits // 8}").tobytes()
    whole = np.clip(np.round(flat * (2 ** (bits - 1) - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if bits == 8:
        return bytes((whole + 128).astype(np.uint8).data)
    if bits == 24:
        return bytes(
            np.ascontiguousarray(whole.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3]).data
        )
    return bytes(whole.astype(f"<i{bits // 8}").data)


def chunk(name: bytes, content: bytes, size: int | None = None) -> bytes:
    claimed = len(content) if size is None else size
    return name + struct.pack("<I", claimed) + content + b"\0" * (len(content) % 2)


def layout(
    tag: int = PCM,
    channels: int = 1,
    rate: int = 16_000,
    bits: int = 16,
    *,
    frame_bytes: int | None = None,
    subtag: int | None = None,
) -> bytes:
    """The content of a format chunk, the extensible one with ``subtag``."""
    align = channels * bits // 8 if frame_bytes is None else frame_bytes
    body = struct.pack(
        "<HHIIHH", tag, channels, rate, rate * align & 0xFFFFFFFF, align & 0xFFFF, bits
    )
    if subtag is not None:
        body += struct.pack("<HHIH", 22, bits, 0, subtag) + GUID_TAIL
    return body


def riff(*chunks: bytes, size: int | None = None) -> bytes:
    body = b"WAVE" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


def wav(
    wave: Wave | None = None,
    rate: int = 16_000,
    bits: int = 16,
    *,
    channels: int = 1,
    floating: bool = False,
) -> bytes:
    content = encoded(voice(rate=rate) if wave is None else wave, bits, floating=floating)
    form = layout(FLOAT if floating else PCM, channels, rate, bits)
    return riff(chunk(b"fmt ", form), chunk(b"data", content))


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()
