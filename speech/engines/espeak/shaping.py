"""Turns espeak-ng's samples into sound as svc streams it, in the worker that made them.

The event loop, which answers everybody, then only passes the sound on.
"""

from __future__ import annotations

from collections.abc import Sequence

import soxr

from speech.audio.pcm import FADE_SECONDS, SAMPLE_RATE, faded, pcm_bytes, samples
from speech.engines.espeak.equaliser import equalised


def shaped(raw: bytes, rate: int, hertz: Sequence[float], decibels: Sequence[float]) -> bytes:
    """Return ``raw``, of ``rate`` samples per second, at ``SAMPLE_RATE``, with silent edges.

    An equaliser with gains of ``decibels`` at ``hertz`` comes first, unless they are empty. Raises
    ``ValueError`` for half a sample.
    """
    fade = round(FADE_SECONDS * rate)
    signal = faded(samples(raw), start=fade, end=fade)
    if len(hertz):
        signal = equalised(signal, hertz, decibels, rate)
    return pcm_bytes(soxr.resample(signal, rate, SAMPLE_RATE))
