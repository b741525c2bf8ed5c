"""Fixtures of the voices."""

from __future__ import annotations

import pytest

from tests.support.live import Gateway
from tests.support.speech.client import SpeechClient, new_client


@pytest.fixture
def client(gateway: Gateway) -> SpeechClient:
    return new_client(gateway)
