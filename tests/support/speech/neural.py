"""Helpers for tests of the neural engine: whether it is installed, and a running engine."""

from __future__ import annotations

import pytest
from django.conf import settings

from speech.engines.espeak.engine import Espeak
from speech.engines.kokoro import files
from speech.engines.kokoro.engine import Kokoro

_MISSING = files.missing(settings.SVC_NEURAL_DIR)

needs_neural = pytest.mark.skipif(
    _MISSING is not None, reason=f"SKIPPED, the neural engine is not there: {_MISSING}"
)
"""For tests that speak with it; `.ci/run` installs it, so that nothing is skipped there."""


def neural_engine(espeak: Espeak) -> Kokoro:
    """An engine with a preset speed, so that tests need not wait for its measurement."""
    engine = Kokoro(espeak, settings.SVC_NEURAL_DIR, workers=1, threads=1)
    engine.real_time_factor = 0.5
    return engine
