"""The HTTP client for model servers, and the names of their failures.

A request cannot choose a host: addresses come from the catalog alone, redirects are not followed,
the environment's proxies are not used, headers are made from scratch: of a client's, a model server
gets the trace context alone (``core.monitoring.trace_context``). A backend's answer is
untrusted. docs/explain/backends.md has the table of failures.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from core.backends.outbound import request_head
from core.errors import (
    ApiError,
    BackendError,
    BackendProtocolError,
    BackendRejectedRequest,
    BackendTimeout,
    BackendUnavailable,
    ServerOverloaded,
)
from core.http_client.request import (
    ConnectError,
    HttpError,
    ReadError,
    RequestHead,
    ServerDisconnected,
    WriteError,
)
from core.http_client.response import Response
from inference.backends.connections import Connections
from inference.backends.reasons import impossible_in, reason_in, secrets_in
from inference.catalog.snapshot import BackendRef, DeploymentRef

log = logging.getLogger(__name__)

_LARGEST_ERROR = 64 * 1024
_ERROR_BODY_SECONDS = 1.0
"""A refusal whose body takes longer has no reason."""


class NotStarted(Exception):
    """The backend cannot have started on the request, so it may be retried on another backend.

    ``error`` is for the caller when there is no other backend; ``unreachable``: no connection to
    the backend could be made.
    """

    def __init__(self, error: ApiError, *, unreachable: bool = False) -> None:
        super().__init__(type(error).__name__)
        self.error = error
        self.unreachable = unreachable


class ConnectionLost(BackendUnavailable):
    """The connection broke after the request was sent: the backend may have started on it."""

    default_message = "The connection to the model server was lost."


class ServerFailed(BackendError):
    """The backend answered with a server error."""


class Misconfigured(BackendError):
    """The backend works, but its key, its address or the model's name is wrong."""

    default_message = "The model server is not configured correctly. The operator was notified."


class ReportedTimeout(BackendTimeout):
    """The backend works, and reports a timeout of its own (408)."""


class BackendClient:
    """The pooled HTTP client for all backends; belongs to one event loop."""

    def __init__(self) -> None:
        self._connections = Connections()
        self._requests: dict[str, tuple[BackendRef, RequestHead]] = {}

    async def close(self) -> None:
        await self._connections.close()

    async def post(
        self, deployment: DeploymentRef, body: bytes, *, streamed: bool, trace: bytes = b""
    ) -> Response:
        """Send a chat request and return the answer once its status is 200.

        ``trace``: header lines of the trace that the request belongs to.

        Raises ``NotStarted`` when the backend cannot have started, else an ``ApiError`` with the
        contract's name for the failure. Cancellation closes the connection.
        """
        backend = deployment.backend
        try:
            head = self._request(backend)
            if trace:
                head = head.extended(trace)
            response = await self._connections.post(backend, head, body, streamed=streamed)
        except (HttpError, ValueError) as error:
            raise _failure(backend, error) from None
        if response.status == 200 and not response.is_encoded:
            return response
        try:
            await _refuse(deployment, response)
        finally:
            response.close()
        log.warning("backend %s: its answer is compressed", backend.name)
        raise BackendProtocolError().because("its answer is compressed")

    async def is_alive(self, backend: BackendRef, seconds: float) -> bool:
        """Whether ``GET /models`` is answered within ``seconds`` with a status below 500.

        A 404 counts as alive too, because not every server has the path.
        """
        try:
            request = request_head("GET", backend.base_url + "/models", backend.headers)
            due = asyncio.get_running_loop().time() + seconds
            response = await self._connections.client().send(request, None, due=due)
        except (HttpError, ValueError):
            return False
        response.close()
        return response.status < 500

    def _request(self, backend: BackendRef) -> RequestHead:
        known = self._requests.get(backend.id)
        if known is not None and known[0] is backend:
            return known[1]
        request = request_head("POST", backend.base_url + "/chat/completions", backend.headers)
        self._requests[backend.id] = backend, request
        return request


def _failure(backend: BackendRef, error: HttpError | ValueError) -> Exception:
    """Return the failure of an exchange without an answer: ``NotStarted`` or an ``ApiError``."""
    kind = type(error).__name__
    failure: NotStarted | ApiError
    if isinstance(error, ConnectError):
        why = f"cannot connect: {error}"
        failure = NotStarted(BackendUnavailable().because(why), unreachable=True)
    elif isinstance(error, WriteError):
        why = f"closes new connections: {kind}"
        failure = NotStarted(BackendUnavailable().because(why))
    elif isinstance(error, ServerDisconnected | ReadError):
        why = f"connection lost: {kind}"
        failure = ConnectionLost().because(why)
    else:
        why = f"not HTTP: {kind}"
        failure = BackendProtocolError().because(why)
    log.warning("backend %s: %s", backend.name, why)
    return failure


async def _refuse(deployment: DeploymentRef, response: Response) -> None:
    """Raise the error for a status other than 200 (docs/explain/backends.md, Failures)."""
    status, name = response.status, deployment.backend.name
    why = f"answers {status}"
    if status in (429, 503):
        raise NotStarted(ServerOverloaded().because(why))
    if status in (401, 403, 404):
        why += ": its key, address or model is wrong"
        log.error("backend %s: %s", name, why)
        raise Misconfigured().because(why)
    if status in (408, 504):
        log.warning("backend %s: %s", name, why)
        raise (ReportedTimeout if status == 408 else BackendTimeout)().because(why)
    if 400 <= status < 500:
        raise _rejected(await _reason(deployment, response, reason_in)).because(why)
    if status in (500, 501) and (reason := await _reason(deployment, response, impossible_in)):
        raise _rejected(reason).because(why)
    log.warning("backend %s: %s", name, why)
    if status >= 500:
        raise ServerFailed().because(why)
    raise BackendProtocolError().because(why)


async def _reason(
    deployment: DeploymentRef,
    response: Response,
    find: Callable[[bytes, str, Collection[str]], str | None],
) -> str | None:
    """Read the body of a refusal, and ``find`` the backend's own reason in it."""
    response.set_deadline(asyncio.get_running_loop().time() + _ERROR_BODY_SECONDS)
    try:
        body = await response.read_all(_LARGEST_ERROR)
    except HttpError:
        return None
    return find(body, deployment.model, secrets_in(deployment.backend.headers))


def _rejected(reason: str | None) -> BackendRejectedRequest:
    refused = BackendRejectedRequest.default_message
    return BackendRejectedRequest(f"{refused[:-1]}: {reason}" if reason else refused)
