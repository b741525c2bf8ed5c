"""Fixtures of the voices."""

from __future__ import annotations

import pytest

from accounts.models import Plan
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount


@pytest.fixture
def client(gateway: Gateway) -> SpeechAccount:
    return speech_account(gateway, Plan.STANDARD)
