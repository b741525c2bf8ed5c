"""Audio inside svc: signed 16-bit little-endian PCM, one channel, 24 000 samples a second.

Every engine makes it, every encoder reads it, and ``pcm`` answers consist of it (open question of
the speech contract, answered in docs/explain/speech-engine.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import numpy as np
import soxr
from numpy.typing import NDArray

SAMPLE_RATE: Final = 24_000
"""Samples per second."""

CHANNELS: Final = 1

SAMPLE_WIDTH: Final = 2
"""Bytes per sample."""

SHORTEST_SECONDS = 0.02
"""The shortest sound that counts as speech; the length of the silence for a text without a sound."""

FADE_SECONDS: Final = 0.004
"""Length of the fade at the edges of a part: it prevents clicks and is too short to notice."""

QUIET: Final = 100
"""The greatest magnitude that counts as silence at the edge of a part: 50 dB below full scale."""

EDGE_SECONDS: Final = 0.01
"""Silence kept at each edge of a part, so that soft beginnings and ends are not cut."""

LONGEST_EDGE_SECONDS: Final = 2.0
"""The most silence that is held back because it may be the end; more of it is passed on."""

Samples = NDArray[np.int16]


def samples(pcm: bytes) -> Samples:
    """The samples of PCM bytes. Raises ``ValueError`` for half a sample."""
    return np.frombuffer(pcm, dtype="<i2").astype(np.int16, copy=False)


def pcm_bytes(signal: NDArray[Any]) -> bytes:
    """PCM of 16-bit integer samples, or of floats in -1..1, which are clipped, never wrapped."""
    if signal.dtype.kind == "f":
        signal = np.rint(np.clip(signal, -1.0, 1.0) * 32767)
    return signal.astype("<i2", copy=False).tobytes()


def duration(pcm: bytes) -> float:
    """Seconds of sound in ``pcm``."""
    return len(pcm) / (SAMPLE_RATE * SAMPLE_WIDTH)


def silence(seconds: float) -> bytes:
    """PCM of silence, ``seconds`` rounded to a sample; empty for zero or less."""
    return bytes(SAMPLE_WIDTH * max(0, round(seconds * SAMPLE_RATE)))


def faded(part: Samples, *, start: int, end: int) -> Samples:
    """Return a copy that fades in over ``start`` samples and out over ``end`` samples.

    Raised-cosine ramps; those of a part shorter than both overlap.
    """
    shaped = part.copy()
    start, end = min(start, len(part)), min(end, len(part))
    if start:
        shaped[:start] = np.rint(shaped[:start] * _ramp(start))
    if end:
        shaped[-end:] = np.rint(shaped[-end:] * _ramp(end)[::-1])
    return shaped


@cache
def _ramp(length: int) -> NDArray[np.float32]:
    return (0.5 - 0.5 * np.cos(np.pi * np.arange(length) / length)).astype(np.float32)


class Joiner:
    """Joins streamed parts (sentences, silences) so that no edge clicks.

    Feed the pieces of a part to ``piece`` as they come and call ``end_part`` after its last one.
    The last few milliseconds of a part are held back until then, to be faded out.
    """

    def __init__(self) -> None:
        self._fade = round(FADE_SECONDS * SAMPLE_RATE)
        self._held = np.zeros(0, dtype=np.int16)
        self._at_start = True

    def piece(self, pcm: bytes) -> bytes:
        """Add a piece; return the PCM that can be sent, which may be empty."""
        waiting = np.concatenate([self._held, samples(pcm)])
        ready_count = len(waiting) - self._fade
        if ready_count < (self._fade if self._at_start else 1):
            self._held = waiting
            return b""
        ready, self._held = waiting[:ready_count], waiting[ready_count:]
        if self._at_start:
            ready = faded(ready, start=self._fade, end=0)
            self._at_start = False
        return pcm_bytes(ready)

    def end_part(self) -> bytes:
        """Return the rest of the part, faded out; the next piece begins a new part."""
        rest = faded(self._held, start=self._fade if self._at_start else 0, end=self._fade)
        self._held = np.zeros(0, dtype=np.int16)
        self._at_start = True
        return pcm_bytes(rest)


class EdgeTrimmer:
    """Removes the silence before and after a part that arrives in pieces, not that within it.

    Sound is returned at once; silence is held back until more sound shows that it is not the end.
    A completely silent part keeps ``EDGE_SECONDS`` at each edge.
    """

    def __init__(self) -> None:
        self._edge = round(EDGE_SECONDS * SAMPLE_RATE)
        self._longest = round(LONGEST_EDGE_SECONDS * SAMPLE_RATE)
        self._still = np.zeros(0, dtype=np.int16)
        self._sounded = False
        self.cut = 0
        """Samples of silence that were removed before the part that has begun."""

    def piece(self, pcm: bytes) -> bytes:
        """Add a piece; return the PCM that can be passed on, which may be empty."""
        waiting = samples(pcm)
        if len(self._still):
            waiting = np.concatenate([self._still, waiting])
        loud = (waiting > QUIET) | (waiting < -QUIET)
        if not loud.any():
            return self._hold(waiting)
        start = 0 if self._sounded else max(0, int(loud.argmax()) - self._edge)
        self.cut += start
        end = len(loud) - int(loud[::-1].argmax())
        self._sounded = True
        self._still = waiting[end:]
        return pcm_bytes(waiting[start:end])

    def end(self) -> bytes:
        """Return the end of the part; the next piece begins a new one."""
        kept = self._edge if self._sounded else 2 * self._edge
        rest = self._still[:kept]
        self._still, self._sounded, self.cut = self._still[:0], False, 0
        return pcm_bytes(rest)

    def _hold(self, still: Samples) -> bytes:
        passed = max(0, len(still) - self._longest) if self._sounded else 0
        if not self._sounded:
            self.cut += max(0, len(still) - self._longest)
        self._still = still[passed:][-self._longest :]
        return pcm_bytes(still[:passed])


def join(parts: Iterable[bytes], pause_seconds: float = 0.0) -> bytes:
    """Join ``parts`` without clicks, ``pause_seconds`` of silence between them."""
    joiner = Joiner()
    whole = [joiner.piece(part) + joiner.end_part() for part in parts]
    return silence(pause_seconds).join(whole)


class Resampler:
    """Resamples a stream of PCM to ``SAMPLE_RATE`` (soxr, high quality).

    Pieces may have any length: half a sample at the end of a piece waits for the next one.
    """

    def __init__(self, source_rate: int) -> None:
        """``source_rate`` in samples per second; the source has one channel."""
        self._stream = (
            None
            if source_rate == SAMPLE_RATE
            else soxr.ResampleStream(source_rate, SAMPLE_RATE, CHANNELS, dtype="int16")
        )
        self._half = b""

    def piece(self, pcm: bytes) -> bytes:
        """Resample a piece; return what is ready, maybe nothing, since the filter looks ahead."""
        pcm = self._half + pcm
        whole = len(pcm) - len(pcm) % SAMPLE_WIDTH
        pcm, self._half = pcm[:whole], pcm[whole:]
        if self._stream is None:
            return pcm
        return pcm_bytes(self._stream.resample_chunk(samples(pcm)))

    def finish(self) -> bytes:
        """Return the rest; half a sample is dropped. Call it once, last."""
        if self._stream is None:
            return b""
        return pcm_bytes(self._stream.resample_chunk(samples(b""), last=True))
