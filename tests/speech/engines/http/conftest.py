"""The simulated speech server of this process, without the requests of earlier tests."""

from __future__ import annotations

import pytest

from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until


@pytest.fixture
def server(speech_server: SpeechServer) -> SpeechServer:
    until(lambda: speech_server.account()["running"] == 0)
    speech_server.clear_requests()
    return speech_server
