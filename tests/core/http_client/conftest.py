"""Every test of the client runs on asyncio's own event loop and on uvloop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop
from aiohappyeyeballs import AddrInfoType

from core.http_client.client import Connector, HttpClient
from core.http_client.request import RequestHead
from core.http_client.response import Response

Post = Callable[..., Awaitable[Response]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def open_socket(place: AddrInfoType) -> socket.socket:
    return socket.socket(*place[:3])


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient(Connector(5.0, open_socket))
    yield made
    await made.close()


@pytest.fixture
def post(client: HttpClient) -> Post:
    """Post a body to an address, with the options of ``HttpClient.send``."""

    async def send(url: str, body: bytes | None = b"{}", **options: object) -> Response:
        request = RequestHead.of("GET" if body is None else "POST", url, {})
        async with asyncio.timeout(60):
            return await client.send(request, body, **options)  # type: ignore[arg-type]

    return send
