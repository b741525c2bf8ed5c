"""The current state of the speech surface for ``/metrics`` and the admin's list of voices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.monitoring.metrics import Family, gauge
from core.monitoring.worker_stats import worker_stats
from speech.engines import worker_pool
from speech.engines.kokoro import phrases
from speech.engines.kokoro.engine import TOO_SLOW
from speech.requests import metrics
from speech.serving.wiring import service

STATS_NAME: Final = "neural-speed"
"""The name of ``own_speed`` among the workers' stats."""


def own_speed() -> list[float]:
    """The neural engine's real-time factor in this process; empty before it is measured."""
    factor = service().engines.neural.real_time_factor
    return [] if factor is None else [factor]


def neural_speed() -> str | None:
    """How fast the neural engine is on the slowest worker, in words; None while none measured it."""
    if (slowest := _slowest()) is None:
        return None
    speed = f"{slowest:.2f} s of work for a second of sound"
    return f"{speed}: too slow for live streams" if slowest > TOO_SLOW else speed


def speaks_live() -> bool:
    """Whether every worker measured that the neural engine speaks faster than it is heard."""
    slowest = _slowest()
    return slowest is not None and slowest <= TOO_SLOW


def _slowest() -> float | None:
    """The highest real-time factor that a worker measured; None while none did."""
    found = worker_stats.read(STATS_NAME, list[float])
    return max((speed for _, speeds in found for speed in speeds), default=None)


def families() -> Iterator[Family]:
    """The metrics of the speech surface."""
    yield from metrics.families()
    yield worker_pool.restarts.family()
    yield phrases.lookups.family()
    yield from service().engines.families()
    for speed in own_speed():
        yield gauge(
            "svc_speech_neural_real_time_factor",
            "The neural engine's seconds of work for a second of sound, measured at its start.",
            speed,
        )
