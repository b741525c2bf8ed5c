"""The clients for the shared conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.clients.openai_python import AsyncClient, ChatClient, SyncClient
from tests.support.live import Gateway


@pytest.fixture(params=[SyncClient, AsyncClient], ids=["sync", "async"])
def chat_client(request: pytest.FixtureRequest, gateway: Gateway) -> Iterator[ChatClient]:
    """Yield openai-python, once as ``OpenAI`` and once as ``AsyncOpenAI``."""
    chat_client: ChatClient = request.param(gateway)
    yield chat_client
    chat_client.close()
