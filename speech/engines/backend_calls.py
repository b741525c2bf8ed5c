"""HTTP towards one speech backend: who may wait how long, and what a failure is called.

Nothing of a request chooses a host. Redirects, cookies and proxies are off. What a backend says
about a failure is neither shown nor logged, only its status and its name: it may quote the text.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
from yarl import URL

from speech.engines import (
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
)
from speech.snapshot import BackendRef
from svc_project.lib.outbound import is_reused, open_session

log = logging.getLogger(__name__)

Waited = TypeVar("Waited")

_ONE_GO = 256 * 1024


class RequestRefused(EngineError):
    """The backend answered ``status``, from 400 to 499: it does not take this request."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The speech server refused the request ({status}).")
        self.status = status


class _ConnectionLost(EngineUnavailable):
    """The connection ended before a byte of the answer came."""


class Patience:
    """How long a backend may still take. Only time in which it is waited for counts.

    ``silence`` seconds until the answer's first byte, and between two pieces; ``total`` in all.
    """

    def __init__(self, silence: float, total: float) -> None:
        self._silence = self._quiet = silence
        self._total = total

    async def wait(self, coming: Awaitable[Waited]) -> Waited:
        """What ``coming`` gives; raises ``EngineTimeout`` when it takes too long."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(0.0, min(self._quiet, self._total))):
                return await coming
        except TimeoutError:
            raise EngineTimeout("The speech server took too long.") from None
        finally:
            waited = clock() - began
            self._quiet -= waited
            self._total -= waited

    def heard(self) -> None:
        """Something has come: the silence begins anew."""
        self._quiet = self._silence


@dataclass(frozen=True, slots=True)
class Message:
    """A body to be posted. ``path`` is added to the backend's address."""

    path: str
    body: bytes
    content_type: str = "application/json"


class BackendCalls:
    """The pooled connections to one backend; belongs to one event loop."""

    def __init__(self) -> None:
        self._pooled: aiohttp.ClientSession | None = None
        self._unpooled: aiohttp.ClientSession | None = None
        self._closed = False

    async def post(
        self, backend: BackendRef, message: Message, patience: Patience
    ) -> aiohttp.ClientResponse:
        """Send ``message`` and return the answer once its status is a success.

        Sent once more, on a new connection, when a kept one turns out to have been closed: then
        the server has let go of it while it was idle. Raises ``EngineError``.
        """
        try:
            response = await patience.wait(self._send(self._session(pooled=True), backend, message))
        except _ConnectionLost:
            if not is_reused():
                raise
            response = await patience.wait(
                self._send(self._session(pooled=False), backend, message)
            )
        try:
            _check(backend, response)
        except EngineError:
            response.close()
            raise
        return response

    async def read(self, response: aiohttp.ClientResponse, patience: Patience) -> bytes:
        """What has come of the body, at least one byte; empty at its end. Raises ``EngineError``."""
        read = await patience.wait(self._read(response))
        patience.heard()
        return read

    async def delete(self, backend: BackendRef, path: str, patience: Patience) -> None:
        """Delete what is at ``path``; nothing being there is a success. Raises ``EngineError``."""
        session = self._session(pooled=True)
        request = session.delete(
            URL(backend.base_url + path),
            headers=_authorization(backend),
            allow_redirects=False,
        )
        response = await patience.wait(_translated(backend, request))
        response.close()
        if response.status not in (404, 410):
            _check(backend, response)

    async def close(self) -> None:
        """Close every connection; what still runs ends with ``EngineUnavailable``."""
        self._closed = True
        for session in (self._pooled, self._unpooled):
            if session is not None:
                await session.close()

    async def _send(
        self, session: aiohttp.ClientSession, backend: BackendRef, message: Message
    ) -> aiohttp.ClientResponse:
        request = session.post(
            URL(backend.base_url + message.path),
            # aiohttp sends a file piece by piece, and bytes in one go that holds up the others.
            data=io.BytesIO(message.body) if len(message.body) > _ONE_GO else message.body,
            headers={"Content-Type": message.content_type, **_authorization(backend)},
            allow_redirects=False,
        )
        return await _translated(backend, request)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await response.content.readany()
        except (aiohttp.ClientError, ConnectionError):
            raise EngineUnavailable("The connection to the speech server was lost.") from None
        except RuntimeError:
            # aiohttp's word for a connection that this side has closed.
            if not self._closed:
                raise
            raise EngineUnavailable("The engine is closed.") from None

    def _session(self, *, pooled: bool) -> aiohttp.ClientSession:
        if self._closed:
            raise EngineUnavailable("The engine is closed.")
        if pooled:
            self._pooled = self._pooled or open_session()
            return self._pooled
        self._unpooled = self._unpooled or open_session(keep_alive=False)
        return self._unpooled


async def _translated(
    backend: BackendRef, request: Awaitable[aiohttp.ClientResponse]
) -> aiohttp.ClientResponse:
    """The answer's head, or how getting it failed in the engines' words."""
    try:
        return await request
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        log.warning("speech backend %s: cannot connect: %s", backend.name, type(error).__name__)
        raise EngineUnavailable("The speech server cannot be reached.") from None
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
        log.warning("speech backend %s: connection lost: %s", backend.name, type(error).__name__)
        raise _ConnectionLost("The connection to the speech server was lost.") from None
    except aiohttp.ClientConnectionError:
        raise EngineUnavailable("The engine is closed.") from None
    except (aiohttp.ClientError, ValueError) as error:
        log.warning("speech backend %s: not HTTP: %s", backend.name, type(error).__name__)
        raise EngineProtocolError("The speech server does not speak HTTP.") from None


def _authorization(backend: BackendRef) -> dict[str, str]:
    return {"Authorization": f"Bearer {backend.api_key}"} if backend.api_key else {}


def _check(backend: BackendRef, response: aiohttp.ClientResponse) -> None:
    """Raise what a status other than success means (docs/operate/speech-backends.md, Failures)."""
    status = response.status
    if 200 <= status < 300:
        if "Content-Encoding" in response.headers:
            raise EngineProtocolError("The speech server's answer is compressed.")
        return
    if status in (401, 403, 404):
        log.error(
            "speech backend %s: answers %d: its key, address, model or voice is wrong",
            backend.name,
            status,
        )
    else:
        log.warning("speech backend %s: answers %d", backend.name, status)
    if status in (429, 503):
        raise EngineFull("The speech server is at capacity.")
    if status in (408, 504):
        raise EngineTimeout("The speech server took too long.")
    if 400 <= status < 500:
        raise RequestRefused(status)
    if status >= 500:
        raise EngineError("The speech server failed.")
    raise EngineProtocolError("The speech server's answer is no success and no error.")
