"""Faster or slower speech at the same pitch, for engines with a narrower range of speeds.

Overlap-add of windows that are moved to where they fit best (WSOLA; Verhelst and Roelands, 1993).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from speech.audio.pcm import Samples

_WINDOW: Final = 720  # samples: 30 ms at 24 000 a second, more than two periods of a low voice
_HOP: Final = _WINDOW // 2
_SEARCH: Final = 240


def stretched(signal: Samples, factor: float) -> Samples:
    """``signal`` at ``factor`` times its speed: a factor of 2 halves its length."""
    if abs(factor - 1) < 0.01 or len(signal) < 4 * _WINDOW:
        return signal
    source = np.pad(signal.astype(np.float32), (_SEARCH, _WINDOW + _HOP + 2 * _SEARCH))
    count = round(len(signal) / factor / _HOP)
    window = np.hanning(_WINDOW + 1)[:-1].astype(np.float32)
    made = np.zeros(count * _HOP + _WINDOW, dtype=np.float32)
    at = _SEARCH
    for number in range(count):
        made[number * _HOP :][:_WINDOW] += source[at : at + _WINDOW] * window
        wanted = source[at + _HOP : at + _HOP + _WINDOW]
        nominal = min(round((number + 1) * _HOP * factor), len(signal))
        region = source[nominal : nominal + _WINDOW + 2 * _SEARCH]
        likeness = np.correlate(region, wanted[: len(region) - 2 * _SEARCH], "valid")
        at = nominal + int(likeness.argmax())
    return np.clip(np.rint(made[: count * _HOP]), -32768, 32767).astype(np.int16)
