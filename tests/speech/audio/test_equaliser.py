"""The equaliser of clones applies its gains and keeps the sound in its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from speech.audio.equaliser import equalised

RATE = 22_050
HERTZ = (100.0, 400.0, 3000.0, 6000.0)
DECIBELS = (0.0, 0.0, 12.0, 12.0)


def tone(hertz: float, height: float) -> NDArray[np.int16]:
    wave = np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)
    return np.asarray(height * 32767 * wave, dtype=np.int16)


def filtered(signal: NDArray[np.int16], decibels: tuple[float, ...]) -> NDArray[np.int16]:
    return equalised(signal, HERTZ, decibels, RATE)


def decibels_at(hertz: float) -> float:
    signal = tone(hertz, 0.05)
    middle = slice(4000, 18_000)
    after = filtered(signal, DECIBELS)[middle].astype(float).std()
    return float(20 * np.log10(after / signal[middle].astype(float).std()))


def test_the_gains_between_frequencies_are_as_requested() -> None:
    assert decibels_at(4000) - decibels_at(200) == pytest.approx(12, abs=0.5)
    assert decibels_at(1095) - decibels_at(200) == pytest.approx(6, abs=0.7)


def test_level_gains_change_nothing_and_keep_the_sound_in_place() -> None:
    signal = tone(500, 0.5)
    for level in (0.0, 12.0, -12.0):
        assert np.abs(filtered(signal, (level,) * 4)[300:-300] - signal[300:-300]).max() < 40


def test_a_peak_over_full_scale_is_bent_and_never_wrapped() -> None:
    signal = tone(4000, 1.0)
    out = filtered(signal, DECIBELS)
    high = np.abs(signal) > 8000

    assert np.abs(out[300:-300]).max() <= 0.98 * 32767 + 1
    assert (np.sign(out) == np.sign(signal))[300:-300][high[300:-300]].all()


@given(st.integers(0, 3000))
def test_the_sound_keeps_its_length(length: int) -> None:
    signal = np.random.default_rng(3).integers(-9000, 9000, length).astype(np.int16)

    assert len(filtered(signal, DECIBELS)) == length
