"""Compressed sound files of speech servers (FLAC, MP3, Ogg), decoded when they are complete."""

from __future__ import annotations

import io
from typing import Final

import numpy as np
import soundfile

from speech.audio.pcm import Resampler, pcm_bytes
from speech.audio.wav_format import MAX_RATE, MIN_RATE
from speech.engines import EngineProtocolError

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
