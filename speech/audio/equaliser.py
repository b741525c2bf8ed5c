"""The equaliser of clones: a linear-phase FIR filter that keeps the loudness of speech.

It runs in the engines' worker processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

TAPS = 512
_STRONGEST_DB = 18.0
# Speech in the long term: level up to a corner, then falling by 6 dB an octave.
_SPEECH_CORNER_HERTZ = 500.0
_SPEECH_SLOPE = 1.0
_KNEE = 0.8
_CEILING = 0.98


def equalised(
    signal: NDArray[np.int16], hertz: Sequence[float], decibels: Sequence[float], rate: int
) -> NDArray[np.int16]:
    """Filter ``signal`` by a linear-phase FIR filter; the result is as long and not shifted.

    Gains are in ``decibels`` at ``hertz``, level outside; ``rate`` in samples per second. Only the
    shape of the gains counts: for speech, the result is as loud as ``signal``. Peaks that are still
    too high are bent, not clipped.
    """
    if not len(signal):
        return signal
    scaled = signal.astype(np.float64) / 32768
    size = 1 << (len(scaled) + TAPS - 2).bit_length()
    taps = _design(hertz, decibels, rate)
    spread = np.fft.irfft(np.fft.rfft(scaled, size) * np.fft.rfft(taps, size), size)
    start = TAPS // 2  # the delay of a linear-phase filter
    return _bent(spread[start : start + len(scaled)])


def _design(hertz: Sequence[float], decibels: Sequence[float], rate: int) -> NDArray[np.float64]:
    grid = np.fft.rfftfreq(TAPS, 1 / rate)
    gains = np.clip(np.asarray(decibels, dtype=float), -_STRONGEST_DB, _STRONGEST_DB)
    curve = np.interp(np.log(np.maximum(grid, 1.0)), np.log(np.asarray(hertz, dtype=float)), gains)
    factors = 10 ** (curve / 20)
    weights = _SPEECH_CORNER_HERTZ / np.maximum(grid, _SPEECH_CORNER_HERTZ)
    weights = weights**_SPEECH_SLOPE
    factors *= np.sqrt(np.sum(weights**2) / np.sum((factors * weights) ** 2))
    response = np.fft.irfft(factors, TAPS)
    return np.asarray(np.roll(response, TAPS // 2) * np.hanning(TAPS + 1)[:TAPS])


def _bent(signal: NDArray[np.float64]) -> NDArray[np.int16]:
    size = np.abs(signal)
    room = _CEILING - _KNEE
    bent = np.where(size > _KNEE, _KNEE + room * np.tanh((size - _KNEE) / room), size)
    return np.asarray(np.rint(np.copysign(bent, signal) * 32767), dtype=np.int16)
