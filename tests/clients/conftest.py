"""The clients that have the conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.openai_python import Awaiting, Blocking, Talker
from tests.live import Gateway


@pytest.fixture(params=[Blocking, Awaiting], ids=["sync", "async"])
def talker(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[Talker]:
    """openai-python, once as ``OpenAI`` and once as ``AsyncOpenAI``."""
    talker: Talker = request.param(gateway)
    yield talker
    talker.close()
