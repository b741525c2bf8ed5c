"""The bare relay: the minimal ASGI program between a client and a model server.

A raw ASGI application under uvicorn (uvloop, httptools) that forwards the request's body and the
answer's bytes, read by read, without parsing them. The gateway's additional cost is the price of
authentication, validation, limits and metering.

``python -m benchmarks.relay --client aiohttp --port N --backend-port M``
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import uvicorn

from benchmarks.payloads import PATH

_HEADERS = {"content-type": "application/json"}
Answer = tuple[str, str | None, AsyncIterator[bytes]]
"""Content type, content length, and the body, read by read."""


class AiohttpClient:
    def __init__(self, url: str) -> None:
        import aiohttp

        self._url = url
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            read_bufsize=256 * 1024,
        )

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        async with self._session.post(self._url, data=body, headers=_HEADERS) as response:
            headers = response.headers
            yield headers["content-type"], headers.get("content-length"), self._reads(response)

    async def _reads(self, response: Any) -> AsyncIterator[bytes]:
        while read := await response.content.readany():
            yield read


class SvcClient:
    """The gateway's own client (``core/http_client``)."""

    def __init__(self, url: str) -> None:
        from core.http_client.client import Connector, HttpClient
        from core.http_client.request import RequestHead

        self._client = HttpClient(Connector(5.0, lambda place: socket.socket(*place[:3])))
        self._request = RequestHead.of("POST", url, _HEADERS)

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        response = await self._client.send(self._request, body)
        try:
            length = response.header(b"content-length") or None
            yield response.header(b"content-type"), length, self._reads(response)
        finally:
            response.close()

    async def _reads(self, response: Any) -> AsyncIterator[bytes]:
        while read := await response.read():
            yield read


class Httpx2Client:
    def __init__(self, url: str) -> None:
        import httpx2

        self._url = url
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        self._client = httpx2.AsyncClient(limits=limits, timeout=60, trust_env=False)

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        stream = self._client.stream("POST", self._url, content=body, headers=_HEADERS)
        async with stream as response:
            headers = response.headers
            yield headers["content-type"], headers.get("content-length"), response.aiter_raw()


class PyreqwestClient:
    def __init__(self, url: str) -> None:
        self._url = url
        builder: Any = import_module("pyreqwest.client").ClientBuilder()
        self._client = builder.no_proxy().build()

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        request = self._client.post(self._url).headers(_HEADERS).body_bytes(body).build_streamed()
        async with request as response:
            kind = response.get_header("content-type") or ""
            yield kind, response.get_header("content-length"), self._reads(response)

    async def _reads(self, response: Any) -> AsyncIterator[bytes]:
        reader = response.body_reader
        while (read := await reader.read_chunk()) is not None:
            yield bytes(read)


class NiquestsClient:
    def __init__(self, url: str) -> None:
        self._url = url
        # Not a dependency of the project, so its types may be absent.
        niquests: Any = import_module("niquests")
        self._session = niquests.AsyncSession(pool_maxsize=1000, disable_http2=True)
        self._session.trust_env = False

    @asynccontextmanager
    async def post(self, body: bytes) -> AsyncIterator[Answer]:
        response: Any = await self._session.post(
            self._url, data=body, headers=_HEADERS, stream=True
        )
        try:
            headers = response.headers
            # -1: the bytes of one read of the socket.
            reads = await response.iter_raw(-1)
            yield headers["content-type"], headers.get("content-length"), reads
        finally:
            await response.close()


@dataclass(frozen=True, slots=True)
class ClientKind:
    """A client that the relay can use; ``module`` must be installed."""

    module: str
    make: Callable[[str], Any]

    @property
    def is_installed(self) -> bool:
        return find_spec(self.module) is not None


CLIENTS = {
    "aiohttp": ClientKind("aiohttp", AiohttpClient),
    "svc": ClientKind("httptools", SvcClient),
    "httpx2": ClientKind("httpx2", Httpx2Client),
    "pyreqwest": ClientKind("pyreqwest", PyreqwestClient),
    "niquests": ClientKind("niquests", NiquestsClient),
}


class Relay:
    """The ASGI application; ``client`` is created on first use, inside the event loop."""

    def __init__(self, client: Callable[[], Any]) -> None:
        self._make = client
        self._client: Any = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if self._client is None:
            self._client = self._make()
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        async with self._client.post(body) as (kind, length, reads):
            headers = [(b"content-type", kind.encode())]
            if length is not None:
                headers.append((b"content-length", length.encode()))
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for read in reads:
                await send({"type": "http.response.body", "body": read, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--client", choices=CLIENTS, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backend-port", type=int, required=True)
    arguments = parser.parse_args()
    url = f"http://127.0.0.1:{arguments.backend_port}{PATH}"
    make = CLIENTS[arguments.client].make
    uvicorn.run(
        Relay(lambda: make(url)),
        port=arguments.port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="warning",
        access_log=False,
        backlog=2048,
    )


if __name__ == "__main__":
    main()
