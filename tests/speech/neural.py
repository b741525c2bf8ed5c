"""What tests of the neural engine need: whether it is installed, and an engine that runs."""

from __future__ import annotations

import pytest
from django.conf import settings

from speech.engines import kokoro_files
from speech.engines.espeak import Espeak
from speech.engines.kokoro import Kokoro

_MISSING = kokoro_files.missing(settings.SVC_NEURAL_DIR)

needs_neural = pytest.mark.skipif(
    _MISSING is not None, reason=f"SKIPPED, the neural engine is not there: {_MISSING}"
)
"""For tests that speak with it; `.ci/run` installs it, so that nothing is skipped there."""


def neural_engine(espeak: Espeak) -> Kokoro:
    """An engine whose speed counts as measured, which saves each test a sentence."""
    engine = Kokoro(espeak, settings.SVC_NEURAL_DIR, workers=1, threads=1)
    engine.real_time_factor = 0.5
    return engine
