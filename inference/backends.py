"""The HTTP client towards model servers, and what their failures are called.

Nothing of a request chooses a host: addresses come from the catalog alone, redirects are not
followed, the environment's proxies are not used, headers are made from scratch. What a backend
sends is untrusted. docs/explain/backends.md has the table of failures.
"""

from __future__ import annotations

import logging

import aiohttp
from yarl import URL

from inference.connections import (
    Connections,
    is_lost,
    never_sent,
    not_connected,
)
from inference.reasons import reason_in
from inference.snapshot import BackendRef, DeploymentRef
from svc_project.lib.errors import (
    ApiError,
    BackendError,
    BackendProtocolError,
    BackendRejectedRequest,
    BackendTimeout,
    BackendUnavailable,
    ServerOverloaded,
)

log = logging.getLogger(__name__)

_LARGEST_ERROR = 64 * 1024


class NothingRan(Exception):
    """An exchange failed before the backend can have begun: another one may be tried.

    ``error`` is what the caller gets when there is no other; ``unreachable``: no connection to
    the backend could be made.
    """

    def __init__(self, error: ApiError, *, unreachable: bool = False) -> None:
        super().__init__(type(error).__name__)
        self.error = error
        self.unreachable = unreachable


class ConnectionLost(BackendUnavailable):
    """The connection broke after the request was sent: it may have run."""

    default_message = "The connection to the model server was lost."


class ServerFailed(BackendError):
    """The backend answered with a server error."""


class Misconfigured(BackendError):
    """The backend works; its key, its address or the model's name is wrong."""

    default_message = "The model server is not set up correctly. The operator was told."


class GaveUp(BackendTimeout):
    """The backend works, and says itself that it waited too long (408)."""


class BackendClient:
    """The pooled HTTP client towards all backends; belongs to one event loop."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._addresses: dict[str, URL] = {}

    async def close(self) -> None:
        await self._connections.close()

    async def post(
        self, deployment: DeploymentRef, body: bytes, *, streamed: bool
    ) -> aiohttp.ClientResponse:
        """Send a chat request and return the answer once its status is a success.

        Raises ``NothingRan`` when the backend cannot have begun, else an ``ApiError`` with the
        contract's name for the failure. Cancellation closes the connection.
        """
        backend = deployment.backend
        try:
            response = await self._connections.post(
                backend, self._address(backend), body, streamed=streamed
            )
        except (aiohttp.ClientError, ValueError) as error:
            raise _failure(backend, error) from None
        if response.status == 200 and "Content-Encoding" not in response.headers:
            return response
        try:
            await _refuse(deployment, response)
        finally:
            response.close()
        raise BackendProtocolError

    async def read_some(self, response: aiohttp.ClientResponse) -> bytes:
        """What has come of an answer's body, at least one byte; empty at its end.

        Raises ``ConnectionLost``.
        """
        try:
            return await response.content.readany()
        except (aiohttp.ClientError, ConnectionError):
            raise ConnectionLost from None

    async def is_alive(self, backend: BackendRef, seconds: float) -> bool:
        """Whether ``GET /models`` is answered within ``seconds`` by anything but a server error.

        A status such as 404 will do: not every server has the path, and one that answers lives.
        """
        try:
            response = await self._connections.kept().get(
                URL(backend.base_url + "/models"),
                headers=backend.headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds),
            )
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return False
        response.close()
        return response.status < 500

    def _address(self, backend: BackendRef) -> URL:
        address = self._addresses.get(backend.base_url)
        if address is None:
            address = URL(backend.base_url + "/chat/completions")
            self._addresses[backend.base_url] = address
        return address


def _failure(backend: BackendRef, error: aiohttp.ClientError | ValueError) -> Exception:
    """What an exchange that got no answer failed with: ``NothingRan`` or an ``ApiError``."""
    kind = type(error).__name__
    if isinstance(error, aiohttp.ClientError):
        if not_connected(error):
            log.warning("backend %s: cannot connect: %s", backend.name, kind)
            return NothingRan(BackendUnavailable(), unreachable=True)
        if never_sent(error):
            log.warning("backend %s: closes new connections: %s", backend.name, kind)
            return NothingRan(BackendUnavailable())
        if is_lost(error):
            log.warning("backend %s: connection lost: %s", backend.name, kind)
            return ConnectionLost()
    log.warning("backend %s: not HTTP: %s", backend.name, kind)
    return BackendProtocolError()


async def _refuse(deployment: DeploymentRef, response: aiohttp.ClientResponse) -> None:
    """Raise what a status other than success means (docs/explain/backends.md, Failures)."""
    status, name = response.status, deployment.backend.name
    if status in (429, 503):
        raise NothingRan(ServerOverloaded())
    if status in (401, 403, 404):
        log.error("backend %s: answers %d: its key, address or model is wrong", name, status)
        raise Misconfigured
    if status == 408:
        raise GaveUp
    if status == 504:
        log.warning("backend %s: answers %d", name, status)
        raise BackendTimeout
    if 400 <= status < 500:
        raise BackendRejectedRequest(await _reason(deployment, response))
    log.warning("backend %s: answers %d", name, status)
    if status >= 500:
        raise ServerFailed
    raise BackendProtocolError


async def _reason(deployment: DeploymentRef, response: aiohttp.ClientResponse) -> str:
    """Why the backend refused, in its own words where they are fit to show (``inference.reasons``)."""
    refused = BackendRejectedRequest.default_message
    try:
        body = await response.content.read(_LARGEST_ERROR)
    except aiohttp.ClientError:
        return refused
    reason = reason_in(body, deployment.model)
    return f"{refused[:-1]}: {reason}" if reason else refused
