"""Listens to sound in tests: measurements, and a recogniser that picks one of N sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import soxr
from pocketsphinx import Decoder

from speech.audio.pcm import SAMPLE_RATE, samples

_RECOGNISER_RATE = 16_000
_SILENT = 200  # 44 dB below full scale
_NOISE = 0.0316  # -30 dB below the voice: the models were trained on rooms, not on pure silence


def loudness(pcm: bytes) -> float:
    """Root mean square, full scale is 1."""
    signal = samples(pcm).astype(float) / 32768
    return float(np.sqrt(np.mean(signal**2))) if len(signal) else 0.0


def steepest_step(pcm: bytes) -> int:
    """The largest difference between adjacent samples; a click is a large one."""
    signal = samples(pcm).astype(int)
    return int(np.abs(np.diff(signal)).max()) if len(signal) > 1 else 0


def silences(pcm: bytes, least: float) -> list[float]:
    """Lengths in seconds of the silences within the sound of at least ``least`` seconds, in order."""
    loud = np.flatnonzero(np.abs(samples(pcm).astype(int)) > _SILENT)
    lengths = np.diff(loud) / SAMPLE_RATE
    return [float(length) for length in lengths if length >= least]


def still_edges(pcm: bytes) -> tuple[float, float]:
    """Seconds of silence before the first sound and after the last one."""
    loud = np.flatnonzero(np.abs(samples(pcm).astype(int)) > _SILENT)
    return float(loud[0]) / SAMPLE_RATE, (len(samples(pcm)) - 1 - float(loud[-1])) / SAMPLE_RATE


def median_pitch(pcm: bytes) -> float:
    """Median fundamental frequency of the voiced frames, in Hz."""
    signal = samples(pcm).astype(float)
    found = []
    for at in range(0, len(signal) - 1200, 600):
        frame = signal[at : at + 1200] - signal[at : at + 1200].mean()
        if frame.std() < 500:
            continue
        likeness = np.correlate(frame, frame, "full")[1199:]
        lag = 55 + int(likeness[55:430].argmax())
        if likeness[lag] > 0.5 * likeness[0]:
            found.append(SAMPLE_RATE / lag)
    return float(np.median(found)) if found else 0.0


def energy_between(pcm: bytes, low: float, high: float) -> float:
    """The share of the sound's energy between two frequencies."""
    power = np.abs(np.fft.rfft(samples(pcm).astype(float))) ** 2
    hertz = np.fft.rfftfreq(2 * (len(power) - 1), 1 / SAMPLE_RATE)
    return float(power[(hertz >= low) & (hertz < high)].sum() / power.sum())


def sentence_heard(pcm: bytes, sentences: Sequence[str]) -> str:
    """Return the sentence of ``sentences`` (plain lower-case words) that is recognised in ``pcm``."""
    signal = soxr.resample(samples(pcm).astype(np.float32), SAMPLE_RATE, _RECOGNISER_RATE)
    rustle = np.random.default_rng(1).standard_normal(len(signal))
    signal = signal + rustle * _NOISE * np.sqrt(np.mean(signal**2))
    decoder = Decoder(samprate=_RECOGNISER_RATE, lm=None, loglevel="FATAL")
    grammar = f"#JSGF V1.0; grammar g; public <s> = {' | '.join(sentences)};"
    decoder.add_jsgf_string("g", grammar)
    decoder.activate_search("g")
    decoder.start_utt()
    decoder.process_raw(np.clip(signal, -32768, 32767).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    heard = decoder.hyp()
    return "" if heard is None else str(heard.hypstr)


def aligned(pcm: bytes, words: Sequence[str]) -> list[tuple[float, float]]:
    """The start and end in seconds of each of ``words``, which a recogniser is told, in ``pcm``.

    Empty when it does not find them, as sometimes in fast speech, whose pitch differs each time.
    """
    signal = soxr.resample(samples(pcm).astype(np.float32), SAMPLE_RATE, _RECOGNISER_RATE)
    signal *= 20_000 / np.abs(signal).max()
    decoder = Decoder(samprate=_RECOGNISER_RATE, lm=None, bestpath=False, loglevel="FATAL")
    decoder.set_align_text(" ".join(words))
    decoder.start_utt()
    decoder.process_raw(signal.astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
    return [
        (part.start_frame / 100, (part.end_frame + 1) / 100)
        for part in decoder.seg() or ()
        if part.word[0] not in "<[("
    ]
