"""The HTTP client of one speech backend: its timeouts and its failures as ``EngineError``.

No part of a request chooses a host. Redirects, cookies and proxies are off. A backend's own error
message is neither shown nor logged, only the status and the backend's name: it may quote the text.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from core.backends.outbound import open_client, request_head
from core.http_client.client import HttpClient
from core.http_client.request import (
    Closed,
    ConnectError,
    HttpError,
    ReadError,
    RequestHead,
    ServerDisconnected,
    WriteError,
)
from core.http_client.response import Response
from core.monitoring import observation
from speech.engines import (
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
)
from speech.engines.http.backend import BackendRef

log = logging.getLogger(__name__)

Waited = TypeVar("Waited")


class RequestRefused(EngineError):
    """The backend refused the request with ``status``, from 400 to 499."""

    def __init__(self, status: int) -> None:
        super().__init__(f"The speech server refused the request ({status}).")
        self.status = status


class Timeouts:
    """The timeouts of one answer. Only the time spent in ``wait`` counts.

    ``idle`` seconds until the first byte and between two pieces; ``total`` seconds in all.
    """

    def __init__(self, idle: float, total: float) -> None:
        self._idle = self._idle_left = idle
        self._total_left = total

    async def wait(self, coming: Awaitable[Waited]) -> Waited:
        """Await ``coming``. Raises ``EngineTimeout``."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(max(0.0, min(self._idle_left, self._total_left))):
                return await coming
        except TimeoutError:
            raise EngineTimeout("The speech server took too long.") from None
        finally:
            waited = clock() - began
            self._idle_left -= waited
            self._total_left -= waited

    def restart_idle(self) -> None:
        """Restart the idle timeout, after bytes have arrived."""
        self._idle_left = self._idle


@dataclass(frozen=True, slots=True)
class BackendPost:
    """A body to post. ``path`` is appended to the backend's address; ``is_beside_v1``: to that without
    the ``/v1`` at its end."""

    path: str
    body: bytes
    content_type: str = "application/json"
    is_beside_v1: bool = False

    def url(self, backend: BackendRef) -> str:
        """Where it is posted."""
        address = backend.base_url
        return (address.removesuffix("/v1") if self.is_beside_v1 else address) + self.path


class BackendCalls:
    """The pooled connections to one backend; belongs to one event loop."""

    def __init__(self) -> None:
        self._client: HttpClient | None = None
        self._closed = False

    async def post(self, backend: BackendRef, message: BackendPost, timeouts: Timeouts) -> Response:
        """Send ``message`` and return the answer once its status is a success.

        Retried once, on a new connection, when the server had closed the kept connection while it
        was idle. Raises ``EngineError``.
        """
        headers = {"content-type": message.content_type, **_authorization(backend)}
        try:
            request = request_head("POST", message.url(backend), headers)
            if (seen := observation.current()) is not None and (trace := seen.trace_lines):
                request = request.extended(trace)
            try:
                response = await self._send(request, message.body, timeouts)
            except (ServerDisconnected, WriteError) as error:
                if not error.reused:
                    raise
                response = await self._send(request, message.body, timeouts, fresh=True)
        except (HttpError, ValueError) as error:
            raise _failure(backend, error) from None
        try:
            _check(backend, response)
        except EngineError:
            response.close()
            raise
        return response

    async def read(self, backend: BackendRef, response: Response, timeouts: Timeouts) -> bytes:
        """Read at least one byte of the body; return b"" at its end. Raises ``EngineError``."""
        try:
            read = await timeouts.wait(response.read())
        except Closed:
            raise EngineUnavailable("The engine is closed.") from None
        except HttpError as error:
            log.warning(
                "speech backend %s: connection lost: %s", backend.name, type(error).__name__
            )
            raise EngineUnavailable("The connection to the speech server was lost.") from None
        timeouts.restart_idle()
        return read

    async def delete(self, backend: BackendRef, path: str, timeouts: Timeouts) -> None:
        """Delete the resource at ``path``; 404 and 410 count as success. Raises ``EngineError``."""
        try:
            request = request_head("DELETE", backend.base_url + path, _authorization(backend))
            response = await self._send(request, None, timeouts)
        except (HttpError, ValueError) as error:
            raise _failure(backend, error) from None
        response.close()
        if response.status not in (404, 410):
            _check(backend, response)

    async def close(self) -> None:
        """Close every connection; running requests end with ``EngineUnavailable``."""
        self._closed = True
        if self._client is not None:
            await self._client.close()

    async def _send(
        self, request: RequestHead, body: bytes | None, timeouts: Timeouts, *, fresh: bool = False
    ) -> Response:
        if self._closed:
            raise Closed
        self._client = self._client or open_client()
        return await timeouts.wait(self._client.send(request, body, fresh=fresh))


def _failure(backend: BackendRef, error: HttpError | ValueError) -> EngineError:
    """Return the failure of an exchange without an answer."""
    kind = type(error).__name__
    if isinstance(error, Closed):
        return EngineUnavailable("The engine is closed.")
    if isinstance(error, ConnectError):
        log.warning("speech backend %s: cannot connect: %s", backend.name, error)
        return EngineUnavailable("The speech server cannot be reached.")
    if isinstance(error, ServerDisconnected | WriteError | ReadError):
        log.warning("speech backend %s: connection lost: %s", backend.name, kind)
        return EngineUnavailable("The connection to the speech server was lost.")
    log.warning("speech backend %s: not HTTP: %s", backend.name, kind)
    return EngineProtocolError("The speech server's answer is not valid HTTP.")


def _authorization(backend: BackendRef) -> dict[str, str]:
    return {"Authorization": f"Bearer {backend.api_key}"} if backend.api_key else {}


def _check(backend: BackendRef, response: Response) -> None:
    """Raise the ``EngineError`` of a failure status (docs/operate/speech-backends.md, Failures)."""
    status = response.status
    if 200 <= status < 300:
        if response.is_encoded:
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
    raise EngineProtocolError("The speech server answered neither with success nor an error.")
