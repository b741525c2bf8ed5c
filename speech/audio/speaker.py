"""Measures a speaker: pitch, its spread, vocal-tract size and long-term spectrum.

Pitch is found by YIN (de Cheveigne and Kawahara, 2002). The vocal-tract ratio of two speakers is
the frequency warp that makes their mean envelopes correlate best. The long-term average spectrum
(LTAS) is taken in third-octave bands. All of it is independent of level; hum of the mains is
filtered out before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

Signal = npt.NDArray[np.float64]

RATE = 16_000
"""Frames a second of the signal that is measured."""

BAND_CENTRES: tuple[float, ...] = tuple(1000 * 2 ** (step / 3) for step in range(-10, 9))
"""Third-octave bands of the LTAS in Hz: 99 to 6350."""

MIN_F0, MAX_F0 = 60.0, 500.0
MIN_WARP, MAX_WARP = 0.85, 1.25

_HOP = 160
_WINDOW = 512
_LAGS = int(RATE / MIN_F0) + 2
_FFT = 1024
_APERIODICITY = 0.15
_ACTIVE_DB = 35.0
_MIN_VOICED_FRAMES = 10
_EMPTY_BAND_DB = 60.0
_CEPSTRA = 40
_WARP_GRID = np.geomspace(400.0, 3400.0, 300)
"""Up to 3400 Hz only: beyond it, telephone recordings and noise mislead the search."""

_BIN_HZ = RATE / _FFT
_FREQUENCIES = np.arange(_FFT // 2 + 1) * _BIN_HZ


@dataclass(frozen=True, slots=True, eq=False)
class Speaker:
    """The measurements of a recording.

    ``f0`` is the median pitch in Hz, None where no voice was found; ``spread`` is the standard
    deviation of the pitch in semitones, from its median absolute deviation; ``envelope`` is the
    mean log spectrum of the voiced parts, smoothed, at multiples of 15.625 Hz; ``ltas`` is the
    level of each of ``BAND_CENTRES`` in dB, relative to their mean, NaN where the recording has
    nothing; ``voiced_seconds`` is the length of its voiced parts.
    """

    f0: float | None
    spread: float
    envelope: Signal
    ltas: Signal
    voiced_seconds: float


def analyse(samples: npt.NDArray[np.float32], rate: int) -> Speaker:
    """Measure a recording of at least 0.1 seconds at ``rate`` frames a second, any level.

    It takes about 10 ms for each second and never fails on finite samples: noise and silence have
    no pitch and an envelope of no speaker.
    """
    signal = _prepare(samples, rate)
    frames = _framed(signal)
    loudness = 10 * np.log10(np.mean(frames[:, :_WINDOW] ** 2, axis=1) + 1e-12)
    active = loudness > max(loudness.max() - _ACTIVE_DB, -100.0)
    frames = frames[active] if active.any() else frames[:1]
    pitch = _yin(frames)
    voiced = np.isfinite(pitch)
    found = _without_outliers(pitch[voiced])
    spectra = np.abs(np.fft.rfft(frames * np.hanning(_FFT), axis=1)) ** 2
    has_voice = len(found) >= _MIN_VOICED_FRAMES
    return Speaker(
        f0=float(np.median(found)) if has_voice else None,
        spread=_spread(found) if has_voice else 0.0,
        envelope=_envelope(spectra[voiced] if has_voice else spectra),
        ltas=_ltas(spectra.mean(axis=0), rate),
        voiced_seconds=len(found) * _HOP / RATE,
    )


def warp_between(speaker: Speaker, base: Speaker) -> float:
    """The ratio of ``speaker``'s formant frequencies to ``base``'s: above 1 is a shorter tract.

    Clamped to the range from 0.85 to 1.25.
    """
    target = _without_parabola(_envelope_at(speaker, _WARP_GRID))
    candidates = np.arange(0.80, 1.305, 0.005)
    scores = np.array(
        [
            float(target @ _without_parabola(_envelope_at(base, _WARP_GRID / warp)))
            for warp in candidates
        ]
    )
    best = int(scores.argmax())
    warp = float(candidates[best]) + 0.005 * _peak_offset(scores, best)
    return min(max(warp, MIN_WARP), MAX_WARP)


def ltas_distance(one: Speaker, other: Speaker) -> float:
    """Root mean square difference of two LTAS in dB, over the bands that both have."""
    difference = ltas_difference(one, other)
    return float(np.sqrt(np.nanmean(difference**2))) if np.isfinite(difference).any() else 0.0


def ltas_difference(one: Speaker, other: Speaker) -> Signal:
    """``one``'s LTAS minus ``other``'s in dB, their means over common bands made equal.

    NaN in bands that either does not have.
    """
    difference: Signal = one.ltas - other.ltas
    if not np.isfinite(difference).any():
        return difference
    return difference - np.nanmean(difference)


def _prepare(samples: npt.NDArray[np.float32], rate: int) -> Signal:
    """Resample to ``RATE``, remove frequencies below the voice, scale to a peak of 1."""
    resampled = soxr.resample(samples.astype(np.float32), rate, RATE, quality="HQ")
    # The length gets small factors only: others make the transform ten times slower.
    length = -(-len(resampled) // 4096) * 4096
    spectrum = np.fft.rfft(resampled.astype(np.float64), length)
    frequencies = np.fft.rfftfreq(length, 1 / RATE)
    # The filter rises from 0 at 62 Hz to 1 at 82 Hz: it removes mains hum, not the lowest voices.
    spectrum *= np.clip((frequencies - 62.0) / 20.0, 0.0, 1.0)
    signal = np.fft.irfft(spectrum, length)[: len(resampled)]
    peak = float(np.abs(signal).max(initial=0.0))
    return signal / peak if peak > 1e-6 else np.zeros_like(signal)


def _framed(signal: Signal) -> Signal:
    padded = np.concatenate([signal, np.zeros(_FFT)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, _FFT)
    return windows[: max(len(signal) - _FFT, 1) : _HOP]


def _yin(frames: Signal) -> Signal:
    """The pitch of each frame in Hz, NaN where it is not periodic."""
    head = np.fft.rfft(frames[:, :_WINDOW], _FFT, axis=1)
    correlation = np.fft.irfft(head.conj() * np.fft.rfft(frames, axis=1), axis=1)[:, :_LAGS]
    energy = np.cumsum(np.pad(frames**2, ((0, 0), (1, 0))), axis=1)
    moving = energy[:, _WINDOW : _WINDOW + _LAGS] - energy[:, :_LAGS]
    difference = np.maximum(moving[:, :1] + moving - 2 * correlation, 0.0)
    difference[:, 0] = 0.0
    running = np.maximum(np.cumsum(difference, axis=1), 1e-9)
    aperiodicity = difference * np.arange(_LAGS, dtype=np.float64) / running
    aperiodicity[:, : int(RATE / MAX_F0)] = 1.0
    periodic = aperiodicity < _APERIODICITY
    periodic[:, -1] = False
    # The first dip below the threshold, followed down to its bottom.
    first = periodic.argmax(axis=1)
    rising = np.diff(aperiodicity, axis=1, append=np.inf) >= 0
    bottom = (rising & (np.arange(_LAGS) >= first[:, None])).argmax(axis=1)
    pitch = np.full(len(frames), np.nan)
    for row in np.flatnonzero(periodic.any(axis=1)):
        lag = int(bottom[row])
        pitch[row] = RATE / (lag + _peak_offset(-aperiodicity[row], lag))
    return pitch


def _peak_offset(values: Signal, index: int) -> float:
    """The top of the parabola through three values, as an offset from ``index`` in -0.5..0.5."""
    if not 0 < index < len(values) - 1:
        return 0.0
    left, middle, right = (float(value) for value in values[index - 1 : index + 2])
    bend = left - 2 * middle + right
    return 0.0 if bend >= 0 else min(max(0.5 * (left - right) / bend, -0.5), 0.5)


def _without_outliers(pitch: Signal) -> Signal:
    """Remove frames whose pitch was mistaken by an octave or more."""
    if not len(pitch):
        return pitch
    middle = np.median(pitch)
    return pitch[(pitch > middle / 1.8) & (pitch < middle * 1.8)]


def _spread(pitch: Signal) -> float:
    semitones = 12 * np.log2(pitch)
    return float(1.4826 * np.median(np.abs(semitones - np.median(semitones))))


def _envelope(spectra: Signal) -> Signal:
    mean = np.log(spectra + 1e-9).mean(axis=0)
    cepstrum = np.fft.irfft(mean)
    cepstrum[_CEPSTRA : len(cepstrum) - _CEPSTRA + 1] = 0.0
    return np.fft.rfft(cepstrum).real


def _envelope_at(speaker: Speaker, frequencies: Signal) -> Signal:
    return np.interp(frequencies, _FREQUENCIES, speaker.envelope)


def _without_parabola(curve: Signal) -> Signal:
    """Remove tilt and bow (voice quality, microphone) from ``curve``; scale it to length 1."""
    position = np.linspace(-1.0, 1.0, len(curve))
    rest: Signal = curve - np.polyval(np.polyfit(position, curve, 2), position)
    unit: Signal = rest / max(float(np.linalg.norm(rest)), 1e-9)
    return unit


def _ltas(power: Signal, rate: int) -> Signal:
    levels = np.full(len(BAND_CENTRES), np.nan)
    for index, centre in enumerate(BAND_CENTRES):
        low, high = centre * 2 ** (-1 / 6), centre * 2 ** (1 / 6)
        if high < 0.48 * rate:
            inside = (high > _FREQUENCIES) & (low <= _FREQUENCIES)
            levels[index] = 10 * np.log10(power[inside].mean() + 1e-12)
    levels[levels < np.nanmax(levels) - _EMPTY_BAND_DB] = np.nan
    relative: Signal = levels - np.nanmean(levels)
    return relative
