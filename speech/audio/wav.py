"""Reads reference clips, untrusted WAV files in base64, strictly into samples.

Rules: speech contract, ``POST /v1/voices``; docs/explain/clones.md, The reference clip. The layout
is Microsoft's "Multimedia Programming Interface and Data Specifications 1.0" (RIFF, WAVE) with
``WAVEFORMATEXTENSIBLE``. Sizes in the file are not trusted: no memory is allocated by them, and the
length of a clip is the number of frames that are really there.
"""

from __future__ import annotations

import binascii
import io
import struct
import wave
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


MIN_SECONDS = 3
MAX_SECONDS = 12
MAX_BASE64_CHARACTERS = 16_000_000
"""A longer text does not fit in the largest request body (speech contract, Limits)."""

DATA_URL_PREFIX = "data:audio/wav;base64,"

_MAX_CHUNKS = 1_000
_OTHER_FILES = (
    (b"RIFX", "a big-endian WAV (RIFX)"),
    (b"RF64", "a 64-bit WAV (RF64)"),
    (b"BW64", "a 64-bit WAV (BW64)"),
    (b"riff", "a Sony Wave64 file"),
    (b"ID3", "an MP3 file"),
    (b"\xff\xfb", "an MP3 file"),
    (b"\xff\xf3", "an MP3 file"),
    (b"\xff\xf2", "an MP3 file"),
    (b"OggS", "an Ogg file"),
    (b"fLaC", "a FLAC file"),
    (b"FORM", "an AIFF file"),
    (b"\x1aE\xdf\xa3", "a WebM or Matroska file"),
)

_SILENCE_PEAK = 0.001
_CLIPPING_PEAK = 0.1
_CLIPPED_SHARE = 0.25
_MIN_ACTIVE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Clip:
    """A usable reference clip: one channel, finite, the peak at most 1.0.

    ``rate`` is in frames a second, as in the file; ``frames`` is the length of ``samples``.
    """

    samples: Samples
    rate: int

    @property
    def seconds(self) -> float:
        """The length in seconds, by the decoded frames."""
        return len(self.samples) / self.rate


def clip_from_base64(text: str) -> Clip:
    """Read the clip in ``audio_b64``. Raises only ``UnusableClip``, for any text."""
    return read_clip(decode_base64(text))


def decode_base64(text: str) -> bytes:
    """Decode strict base64 (RFC 4648, section 4).

    One prefix ``data:audio/wav;base64,`` is removed. Line breaks, the URL-safe alphabet and missing
    or surplus padding raise ``UnusableClip``.
    """
    body = text.removeprefix(DATA_URL_PREFIX)
    if len(body) > MAX_BASE64_CHARACTERS:
        raise UnusableClip(f"it is longer than {MAX_BASE64_CHARACTERS} base64 characters.")
    padding = len(body) - len(body.rstrip("="))
    if not body:
        raise UnusableClip("it is empty; send a WAV file in base64.")
    try:
        if len(body) % 4 or padding > 2:
            raise ValueError
        return binascii.a2b_base64(body, strict_mode=True)
    except ValueError:
        if body.startswith("data:"):
            raise UnusableClip(
                f"its prefix is not supported: send the base64 alone, or with {DATA_URL_PREFIX!r} "
                "in front of it."
            ) from None
        raise UnusableClip(
            "it is not valid base64: use the standard alphabet with padding, without line breaks."
        ) from None


def read_clip(content: bytes) -> Clip:
    """Read a WAV file: PCM of 8, 16, 24 or 32 bits, or 32- or 64-bit float, 1 or 2 channels.

    Raises only ``UnusableClip``, for any bytes: another file, not 3.0 to 12.0 seconds (inclusive),
    silent, clipped throughout, not finite. It takes memory in proportion to the bytes, and about
    100 ms for the longest file.
    """
    layout, data = _chunks(content)
    form = parse_format(layout)
    frames = len(data) // form.frame_bytes
    if not MIN_SECONDS * form.rate <= frames <= MAX_SECONDS * form.rate:
        raise UnusableClip(_wrong_length(frames, form.rate))
    channels = decode_samples(data[: frames * form.frame_bytes], form).reshape(
        frames, form.channels
    )
    if not np.isfinite(channels).all():
        raise UnusableClip("it holds samples that are not finite numbers (NaN or infinity).")
    samples = _one_channel(channels)
    _require_sound(samples, form.rate)
    return Clip(samples, form.rate)


def _wrong_length(frames: int, rate: int) -> str:
    """The message, in seconds, and in frames too where the seconds round to an allowed length."""
    seconds = f"{frames / rate:.3f}"
    long = f"{seconds} seconds long"
    if MIN_SECONDS <= float(seconds) <= MAX_SECONDS:
        least, most = MIN_SECONDS * rate, MAX_SECONDS * rate
        bound = f"at most {most}" if frames > most else f"at least {least}"
        long = f"{frames} frames long, {seconds} seconds at {rate} Hz ({bound} frames are allowed)"
    return f"the clip is {long}; it must be {MIN_SECONDS} to {MAX_SECONDS} seconds."


def canonical_wav(clip: Clip) -> bytes:
    """Write ``clip`` as a plain 16-bit mono WAV file, without other chunks of the original."""
    output = io.BytesIO()
    with wave.open(output, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(clip.rate)
        file.writeframes((clip.samples * 32767).round().astype("<i2").tobytes())
    return output.getvalue()


def _chunks(content: bytes) -> tuple[bytes, memoryview]:
    """The bytes of the format chunk, and the sample data that are really there."""
    _require_riff(content)
    view = memoryview(content)
    layout: bytes | None = None
    position = 12
    for _ in range(_MAX_CHUNKS):
        if position + 8 > len(content):
            raise UnusableClip("the WAV file holds no audio data.")
        name, size = struct.unpack_from("<4sI", content, position)
        position += 8
        rest = len(content) - position
        if name == b"data":
            if layout is None:
                raise UnusableClip("the WAV file has no format chunk before its audio data.")
            if rest < size < PLACEHOLDER_SIZE:
                raise UnusableClip(
                    f"the WAV file is cut short: its header promises {size} bytes of audio, "
                    f"it holds {rest}."
                )
            return layout, view[position : position + min(size, rest)]
        if size > rest:
            raise UnusableClip("the WAV file is damaged: a chunk reaches beyond its end.")
        if name == b"fmt ":
            if layout is not None:
                raise UnusableClip("the WAV file is damaged: it has two format chunks.")
            layout = content[position : position + min(size, 40)]
        position += size + size % 2
    raise UnusableClip(f"the WAV file has more than {_MAX_CHUNKS} chunks before its audio data.")


def _require_riff(content: bytes) -> None:
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return
    for magic, description in _OTHER_FILES:
        if content.startswith(magic):
            raise UnusableClip(f"it is {description}; send a RIFF WAV file.")
    raise UnusableClip("it is not a WAV file (no RIFF/WAVE header).")


def _one_channel(channels: Samples) -> Samples:
    """The mean of the channels; the louder one if they cancel out (one is wired in antiphase)."""
    # Scaled and halved before anything is added or squared: a float file may hold 3e38.
    peak = float(np.abs(channels).max())
    scaled = channels / np.float32(peak) if peak > 1 else channels
    mean = (scaled * np.float32(1 / scaled.shape[1])).sum(axis=1, dtype=np.float32)
    loudest = scaled[:, int(np.abs(scaled).max(axis=0).argmax())]
    return np.ascontiguousarray(loudest if _power(mean) < _power(loudest) / 100 else mean)


def _power(samples: Samples) -> float:
    return float(np.mean(np.square(samples, dtype=np.float64)))


def _require_sound(samples: Samples, rate: int) -> None:
    level = np.abs(samples - samples.mean(dtype=np.float64))
    peak = float(level.max())
    if peak < _SILENCE_PEAK:
        raise UnusableClip("the clip is silent.")
    frame = rate // 50
    frames = level[: len(level) // frame * frame].reshape(-1, frame).max(axis=1)
    if np.count_nonzero(frames > peak / 100) * frame < _MIN_ACTIVE_SECONDS * rate:
        raise UnusableClip(f"the clip holds less than {_MIN_ACTIVE_SECONDS} seconds of sound.")
    bottom, top = float(samples.min()), float(samples.max())
    margin = 0.005 * (top - bottom)
    clipped = np.count_nonzero((samples >= top - margin) | (samples <= bottom + margin))
    # In a very quiet 8-bit clip many samples share the outermost step without being clipped.
    if peak >= _CLIPPING_PEAK and clipped > _CLIPPED_SHARE * np.count_nonzero(level > peak / 10):
        raise UnusableClip("the clip is clipped throughout; record it at a lower level.")
