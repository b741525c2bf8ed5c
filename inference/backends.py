"""The HTTP client towards model servers, and what their failures are called.

Nothing of a request chooses a host: addresses come from the catalog alone, redirects are not
followed, the environment's proxies are not used, headers are made from scratch. What a backend
sends is untrusted. docs/explain/backends.md has the table of failures.
"""

from __future__ import annotations

import logging

import aiohttp
import msgspec
from yarl import URL

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
from svc_project.lib.outbound import open_session

log = logging.getLogger(__name__)

_LARGEST_ERROR = 64 * 1024
_LONGEST_REASON = 300


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


class _ErrorObject(msgspec.Struct):
    message: str | None = None


class _ErrorBody(msgspec.Struct):
    """The two ways in which servers report an error: an object under ``error``, or flat."""

    error: _ErrorObject | str | None = None
    message: str | None = None


class BackendClient:
    """The pooled HTTP client towards all backends; belongs to one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._addresses: dict[str, URL] = {}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(self, deployment: DeploymentRef, body: bytes) -> aiohttp.ClientResponse:
        """Send a chat request and return the answer once its status is a success.

        Raises ``NothingRan`` when the backend cannot have begun, else an ``ApiError`` with the
        contract's name for the failure. Cancellation closes the connection.
        """
        backend = deployment.backend
        try:
            response = await self._open_session().post(
                self._address(backend),
                data=body,
                headers=_authorization(backend),
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            log.warning("backend %s: cannot connect: %s", backend.name, type(error).__name__)
            raise NothingRan(BackendUnavailable(), unreachable=True) from None
        except aiohttp.ClientConnectionResetError:
            raise NothingRan(BackendUnavailable()) from None
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if isinstance(error.__cause__, aiohttp.ClientConnectionResetError):
                # A pooled connection had been closed: the request never left whole.
                raise NothingRan(BackendUnavailable()) from None
            log.warning("backend %s: connection lost: %s", backend.name, type(error).__name__)
            raise ConnectionLost from None
        except (aiohttp.ClientError, ValueError) as error:
            log.warning("backend %s: not HTTP: %s", backend.name, type(error).__name__)
            raise BackendProtocolError from None
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
            response = await self._open_session().get(
                URL(backend.base_url + "/models"),
                headers=_authorization(backend),
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

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session()
        return self._session


def _authorization(backend: BackendRef) -> dict[str, str] | None:
    return {"Authorization": f"Bearer {backend.api_key}"} if backend.api_key else None


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
    if 400 <= status < 500:
        raise BackendRejectedRequest(await _reason(deployment, response))
    log.warning("backend %s: answers %d", name, status)
    if status >= 500:
        raise ServerFailed
    raise BackendProtocolError


async def _reason(deployment: DeploymentRef, response: aiohttp.ClientResponse) -> str:
    """Why the backend refused, in its own words where they are fit to show.

    They often say what to mend ("maximum context length is ..."), so one short line of plain text
    is passed on; addresses and traces are not.
    """
    refused = BackendRejectedRequest.default_message
    try:
        read = await response.content.read(_LARGEST_ERROR)
        body = msgspec.json.decode(read, type=_ErrorBody)
    except (aiohttp.ClientError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return refused
    text = body.error.message if isinstance(body.error, _ErrorObject) else body.error
    text = text or body.message or ""
    text = "".join(character if character.isprintable() else " " for character in text)
    text = " ".join(text.split())
    if not text or "://" in text or "Traceback" in text or 'File "' in text:
        return refused
    if len(text) > _LONGEST_REASON:
        text = text[:_LONGEST_REASON].rstrip() + "…"
    return f"{refused[:-1]}: {text.replace(deployment.model, 'the model')}"
