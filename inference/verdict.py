"""What the end of an exchange says about its backend, and about the request.

Only what a backend is to blame for counts against it: not the client's leaving, nor a refusal of
what was asked (4xx), nor honest overload (429, 503), nor an answer that took the whole time allowed.
An error inside an otherwise sound answer says that the server lives, so it does not count either.
A server error (5xx) counts with its caller's name, because it may follow from what was asked.
"""

from __future__ import annotations

from collections.abc import Callable

from inference.backends import ConnectionLost, GaveUp, Misconfigured, NothingRan, ServerFailed
from inference.pool import Lease
from inference.snapshot import PublishedModel
from inference.wire import ChatRequest
from svc_project.lib.errors import (
    ApiError,
    BackendError,
    BackendProtocolError,
    BackendRejectedRequest,
    BackendTimeout,
)
from svc_project.lib.poison import Fingerprint, Poison


class OutOfTime(BackendTimeout):
    """The answer was still coming when the time for a whole exchange was over."""


class RequestBreaksServers(BackendError):
    """Refused without a backend: model servers died when they worked on this request."""

    default_message = (
        "This request has repeatedly broken the model servers that worked on it, so it was not "
        "sent to another one. Change it, or try again in a few minutes."
    )

    def __init__(self) -> None:
        super().__init__(headers={"x-should-retry": "false"})


_LIVES = (BackendRejectedRequest, Misconfigured, GaveUp)
_FAILED = (ConnectionLost, BackendTimeout, BackendProtocolError)


def report(
    failure: ApiError | None,
    lease: Lease,
    poison: Poison,
    request: Callable[[], Fingerprint],
    caller: str,
) -> bool:
    """Say how an exchange that reached its backend ended, None being well.

    ``request`` makes the fingerprint, which is only asked for where it is needed; ``caller`` is
    whose request it was. Returns whether the backend should be asked how it is.
    """
    is_doubtful = False
    trial, backend = lease.trial, lease.deployment.backend.id
    if failure is None:
        trial.succeeded()
        if poison.has_suspects:
            poison.cleared(request())
    elif isinstance(failure, _LIVES):
        trial.answered()
        trial.ended()
    elif isinstance(failure, OutOfTime):
        trial.ended()
    elif isinstance(failure, ServerFailed):
        is_doubtful = trial.failed(caller)
    elif isinstance(failure, _FAILED):
        trial.failed()
    if isinstance(failure, ConnectionLost):
        poison.lost(backend, request())
    elif isinstance(failure, BackendError) and not isinstance(failure, Misconfigured):
        poison.erred(backend, request())
    return is_doubtful


def report_nothing_ran(nothing: NothingRan, lease: Lease, poison: Poison) -> None:
    """Say that an exchange did not begin."""
    if nothing.unreachable:
        lease.trial.failed()
        poison.unreachable(lease.deployment.backend.id)
    lease.trial.ended()


def fingerprint(
    poison: Poison, api_key_id: str, request: ChatRequest, model: PublishedModel
) -> Fingerprint:
    """Of what a backend would be asked, so that what is dropped from a body makes no difference."""
    body = request.backend_body(model.id, send_tools=model.tool_calling)
    return poison.fingerprint(api_key_id, body)
