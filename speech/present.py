"""The speech surface as it stands now: what ``/metrics`` and the admin's list of voices show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from speech.engines.kokoro import TOO_SLOW
from speech.service import service
from svc_project.lib.metrics import Family, gauge
from svc_project.lib.worker_views import views

VIEW: Final = "neural-speed"
"""The name of ``own_speed`` among the views of the workers."""


def own_speed() -> list[float]:
    """The neural engine's real-time factor in this process; empty while it was not measured."""
    factor = service().engines.neural.real_time_factor
    return [] if factor is None else [factor]


def neural_speed() -> str | None:
    """How fast the neural engine is on the slowest worker, in words; None while none measured it."""
    found = [speed for _, speeds in views.read(VIEW, list[float]) for speed in speeds]
    if not found:
        return None
    told = f"{max(found):.2f} s of work for a second of sound"
    return f"{told}: too slow for live streams" if max(found) > TOO_SLOW else told


def families() -> Iterator[Family]:
    """The figures of the speech surface."""
    for speed in own_speed():
        yield gauge(
            "svc_speech_neural_real_time_factor",
            "The neural engine's seconds of work for a second of sound, measured at its start.",
            speed,
        )
