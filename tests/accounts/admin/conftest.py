"""Fixtures of the operators' pages."""

from __future__ import annotations

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def _static_files_are_found_when_asked_for(settings: Settings) -> None:
    """No test needs them; collecting them for each client would take most of the time."""
    settings.WHITENOISE_AUTOREFRESH = True
