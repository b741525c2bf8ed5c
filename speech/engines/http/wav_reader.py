"""Decodes a WAV file while it arrives, from a speech server that may not know its sizes.

Streaming servers put 0, 0xFFFFFFFF or an invented number where the size of the audio belongs. So
the audio ends with the answer, unless a known chunk follows after the promised size.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from speech.audio.pcm import Resampler, pcm_bytes
from speech.audio.wav import (
    PLACEHOLDER_SIZE,
    UnusableClip,
    WavFormat,
    decode_samples,
    parse_format,
)
from speech.engines import EngineProtocolError

_LONGEST_HEADER: Final = 1024 * 1024
_LAYOUT_BYTES: Final = 40
_TRAILERS: Final = frozenset(
    [b"LIST", b"id3 ", b"ID3 ", b"fact", b"bext", b"cue ", b"smpl", b"JUNK", b"PEAK", b"iXML"]
)
"""Chunks that some writers put after the audio."""


class WavReader:
    """Decodes the bytes of a WAV file to PCM (``speech.audio.pcm``).

    ``ends_known``: the answer marks its end (a length, or chunks). Otherwise less audio than the
    header promises means a lost connection.
    """

    complete = False

    def __init__(self, *, ends_known: bool) -> None:
        self._ends_known = ends_known
        self._buffer = b""
        self._at_start = True
        self._layout: WavFormat | None = None
        self._resampler: Resampler | None = None
        self._left: int | None = None
        """Remaining bytes of audio by the header; None when it gives no size."""
        self._padding = 0
        self._rest = b""
        """The bytes of an incomplete frame."""
        self._behind = False
        """Whether the audio has ended and another chunk follows."""

    def feed(self, read: bytes) -> bytes:
        """Decode ``read`` and return the PCM that is ready. Raises ``EngineProtocolError``."""
        if self._behind:
            return b""
        self._buffer += read
        if self._resampler is None and not self._read_header():
            if len(self._buffer) > _LONGEST_HEADER:
                raise EngineProtocolError("The WAV file's header does not end.")
            return b""
        return self._read_audio()

    def finish(self) -> bytes:
        """Return the rest of the PCM. Raises ``EngineProtocolError`` for a truncated file."""
        if self._resampler is None:
            raise EngineProtocolError("The WAV file ends before its audio.")
        if self._left and not self._ends_known:
            raise EngineProtocolError("The WAV file is truncated.")
        return self._resampler.finish()

    def _read_header(self) -> bool:
        """Read the chunks before the audio; return True when the audio begins."""
        if self._at_start:
            if len(self._buffer) < 12:
                return False
            self._buffer = self._buffer[12:]
            self._at_start = False
        while len(self._buffer) >= 8:
            name, size = struct.unpack_from("<4sI", self._buffer)
            if name == b"data":
                self._begin_audio(size)
                return True
            end = 8 + size + size % 2
            if len(self._buffer) < end:
                return False
            if name == b"fmt ":
                self._layout = _parsed(self._buffer[8 : 8 + min(size, _LAYOUT_BYTES)])
            self._buffer = self._buffer[end:]
        return False

    def _begin_audio(self, size: int) -> None:
        if self._layout is None:
            raise EngineProtocolError("The WAV file has no format before its audio.")
        self._buffer = self._buffer[8:]
        self._left = None if size == 0 or size >= PLACEHOLDER_SIZE else size
        self._padding = size % 2
        self._resampler = Resampler(self._layout.rate)

    def _read_audio(self) -> bytes:
        ready = b""
        if self._left is not None:
            promised, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            ready = self._to_pcm(promised)
            self._left -= len(promised)
            if self._left or len(self._buffer) < 4 + self._padding:
                return ready
            follows = self._buffer[self._padding : self._padding + 4]
            if follows == b"RIFF":
                raise EngineProtocolError("One WAV file follows another.")
            if follows in _TRAILERS:
                self._behind, self._buffer = True, b""
                return ready
            self._left = None
        everything, self._buffer = self._buffer, b""
        return ready + self._to_pcm(everything)

    def _to_pcm(self, read: bytes) -> bytes:
        layout, resampler = self._layout, self._resampler
        if layout is None or resampler is None:
            return b""
        read = self._rest + read
        whole = len(read) - len(read) % layout.frame_bytes
        frames, self._rest = read[:whole], read[whole:]
        return resampler.piece(_one_channel(frames, layout)) if frames else b""


def _parsed(layout: bytes) -> WavFormat:
    try:
        return parse_format(layout)
    except UnusableClip as problem:
        raise EngineProtocolError(f"The WAV file cannot be read: {problem.reason}") from None


def _one_channel(frames: bytes, layout: WavFormat) -> bytes:
    if layout.channels == 1 and layout.bits == 16:
        return frames
    decoded = decode_samples(memoryview(frames), layout)
    if not np.isfinite(decoded).all():
        raise EngineProtocolError("The WAV file has samples that are not finite.")
    channels = np.clip(decoded, -1.0, 1.0).reshape(-1, layout.channels)
    return pcm_bytes(channels.mean(axis=1))
