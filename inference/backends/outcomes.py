"""Names the outcome of each exchange, and reports it to the health of its backend and to the quarantine.

Only failures of the backend count against it: not a client that disconnected, nor a refusal of the
request (4xx), nor overload (429, 503), nor an answer that took the whole time allowed. An error
inside an otherwise valid answer shows that the server is alive, so it does not count either. A
server error (5xx) counts per caller, because the request may have caused it.
"""

from __future__ import annotations

from collections.abc import Callable

from core.backends.quarantine import Fingerprint, Quarantine
from core.errors import (
    ApiError,
    BackendError,
    BackendProtocolError,
    BackendRejectedRequest,
    BackendTimeout,
    ClientDisconnected,
    InternalError,
    ServerShuttingDown,
)
from inference.backends.client import (
    ConnectionLost,
    Misconfigured,
    NotStarted,
    ReportedTimeout,
    ServerFailed,
)
from inference.backends.pool import Lease
from inference.catalog.snapshot import PublishedModel
from inference.wire import ChatRequest
from usage.models import Outcome

_OUTCOMES: dict[type[ApiError], Outcome] = {
    BackendRejectedRequest: Outcome.BACKEND_REJECTED,
    BackendTimeout: Outcome.BACKEND_TIMEOUT,
    BackendProtocolError: Outcome.BACKEND_PROTOCOL_ERROR,
    BackendError: Outcome.BACKEND_ERROR,
    ClientDisconnected: Outcome.CLIENT_DISCONNECTED,
    ServerShuttingDown: Outcome.INTERRUPTED,
    InternalError: Outcome.INTERNAL_ERROR,
}


def outcome_of(failure: ApiError | None) -> Outcome:
    """Return the ledger's name for how a request ended.

    An unreachable backend and one without a free slot are both ``backend_unavailable``;
    ``error_code`` tells them apart.
    """
    if failure is None:
        return Outcome.SUCCESS
    return next(
        (_OUTCOMES[kind] for kind in type(failure).__mro__ if kind in _OUTCOMES),
        Outcome.BACKEND_UNAVAILABLE,
    )


class TotalTimeout(BackendTimeout):
    """The total timeout of the exchange expired while the answer was still arriving."""


class RequestBreaksServers(BackendError):
    """Refused without asking a backend: model servers crashed when they worked on this request."""

    default_message = (
        "This request has repeatedly crashed the model servers that worked on it, so it was not "
        "sent to another one. Change it, or retry in a few minutes."
    )

    def __init__(self) -> None:
        super().__init__(headers={"x-should-retry": "false"})


_ALIVE = (BackendRejectedRequest, Misconfigured, ReportedTimeout)
_FAILED = (ConnectionLost, BackendTimeout, BackendProtocolError)


def report(
    failure: ApiError | None,
    lease: Lease,
    quarantine: Quarantine,
    request: Callable[[], Fingerprint],
    caller: str,
) -> bool:
    """Report how an exchange that reached its backend ended; ``failure`` is None for success.

    ``request`` computes the fingerprint, only when it is needed; ``caller`` is the API key's id.
    Returns whether the backend should get a health check.
    """
    needs_check = False
    outcome, backend = lease.report, lease.deployment.backend.id
    if failure is None:
        outcome.succeeded()
        if quarantine.has_suspects:
            quarantine.cleared(request())
    elif isinstance(failure, _ALIVE):
        outcome.answered()
        outcome.ended()
    elif isinstance(failure, TotalTimeout):
        outcome.ended()
    elif isinstance(failure, ServerFailed):
        needs_check = outcome.failed(caller)
    elif isinstance(failure, _FAILED):
        outcome.failed()
    if isinstance(failure, ConnectionLost):
        quarantine.lost(backend, request())
    elif isinstance(failure, BackendError) and not isinstance(failure, Misconfigured):
        quarantine.erred(backend, request())
    return needs_check


def report_not_started(nothing: NotStarted, lease: Lease, quarantine: Quarantine) -> None:
    """Report that the backend did not start on the request."""
    if nothing.unreachable:
        lease.report.failed()
        quarantine.unreachable(lease.deployment.backend.id)
    lease.report.ended()


def fingerprint(
    quarantine: Quarantine, api_key_id: str, request: ChatRequest, model: PublishedModel
) -> Fingerprint:
    """Fingerprint of the request body that a backend would get; dropped fields do not change it."""
    body = request.backend_body(model.id, send_tools=model.tool_calling)
    return quarantine.fingerprint(api_key_id, body)
