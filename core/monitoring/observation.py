"""What is observed of one request: for the request log, for spans, and the trace that a client began.

Nothing is made for a request while nobody observes (``observers``) and its client sent no
``traceparent``. An observation is a plain object that the parts of a request's way write into; it is
never read by them, and holds no text of a request.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

from core.errors import ApiError, reason_of
from core.monitoring import trace_context
from core.monitoring.metrics import Family
from core.monitoring.trace_context import TraceContext


class Attempt:
    """One request to a model server: its name, its own name of the model, and its address."""

    __slots__ = ("address", "backend", "began_ns", "ended_ns", "failure", "model", "span", "trace")

    def __init__(self, backend: str, model: str, address: str, trace: bytes) -> None:
        self.backend = backend
        self.model = model
        self.address = address
        self.began_ns = time.time_ns()
        self.ended_ns = 0
        """0 while it runs."""
        self.failure: str | None = None
        """The code of the error that it ended with, or its type where it has none."""
        self.trace = trace
        """Header lines that pass the trace on."""
        self.span: Any = None

    def end(self, failure: str | None) -> None:
        """Record its end; only the first call counts."""
        if not self.ended_ns:
            self.ended_ns = time.time_ns()
            self.failure = failure


class Observation:
    """One request. Times with ``_ns`` are of the clock, the others of ``perf_counter``."""

    __slots__ = (
        "attempts",
        "began",
        "began_ns",
        "code",
        "counts",
        "ended_ns",
        "first_byte",
        "key_prefix",
        "method",
        "model",
        "organization_id",
        "param",
        "queue_seconds",
        "reason",
        "request_id",
        "route",
        "seconds",
        "span",
        "status",
        "streamed",
        "surface",
        "trace",
        "trace_id",
        "trace_lines",
    )

    def __init__(
        self, request_id: str, surface: str, route: str, method: str, trace: TraceContext | None
    ) -> None:
        self.request_id = request_id
        self.surface = surface
        self.route = route
        self.method = method
        self.trace = trace
        self.began = time.perf_counter()
        self.began_ns = time.time_ns()
        self.ended_ns = 0
        self.seconds = 0.0
        self.first_byte: float | None = None
        self.queue_seconds: float | None = None
        self.organization_id: str | None = None
        self.key_prefix: str | None = None
        self.model: str | None = None
        """A published model's identifier, never a name that is not known."""
        self.streamed: bool | None = None
        self.trace_id = None if trace is None else trace.trace_id
        self.trace_lines = b"" if trace is None else trace.lines
        """Header lines that pass the trace on; empty for none."""
        self.attempts: list[Attempt] = []
        self.counts: Mapping[str, Any] = {}
        """Facts of the request's row."""
        self.status = 0
        self.code: str | None = None
        self.reason: str | None = None
        """Why it failed, where ``code`` does not say it (``core.errors.reason_of``)."""
        self.param: str | None = None
        """The field of a chat or of speech that is at fault."""
        self.span: Any = None

    def mark_first_byte(self) -> None:
        """Record that the head of the answer is sent now."""
        if self.first_byte is None:
            self.first_byte = time.perf_counter()

    def begin_attempt(self, backend: str, model: str, address: str) -> Attempt:
        """Record that a model server is sent the request now."""
        attempt = Attempt(backend, model, address, self.trace_lines)
        self.attempts.append(attempt)
        for each in observers:
            each.attempt_began(self, attempt)
        return attempt

    def end_attempt(self, failure: BaseException | None) -> None:
        """Record the end of the last attempt, if there is one that runs."""
        if self.attempts and not self.attempts[-1].ended_ns:
            attempt = self.attempts[-1]
            attempt.end(None if failure is None else _code_of(failure))
            for each in observers:
                each.attempt_ended(self, attempt)

    def end(self, status: int, failure: ApiError | None) -> None:
        """Record the end of the request, which ``failure`` ended where there is one, and report it."""
        self.seconds = time.perf_counter() - self.began
        self.ended_ns = time.time_ns()
        self.status = status
        if failure is not None:
            self.code, self.reason = why(failure)
            self.param = failure.param
            self.model = self.model or failure.model or None
        for each in observers:
            each.ended(self)


class Observer(Protocol):
    """Is told of each request. No method but ``close`` may take long, and none may raise."""

    def began(self, seen: Observation) -> None: ...

    def attempt_began(self, seen: Observation, attempt: Attempt) -> None: ...

    def attempt_ended(self, seen: Observation, attempt: Attempt) -> None: ...

    def ended(self, seen: Observation) -> None: ...

    def families(self) -> Iterable[Family]:
        """The observer's own metrics."""

    def close(self) -> None:
        """Hand out what waits, for a few seconds at most; the process ends. Called in a thread."""


WHY: Final = "svc.why"
"""The key, in the ASGI scope of a request that a view answers, of what ``why`` says of the error."""

observers: Final[list[Observer]] = []
"""Those of this process; filled before the first request."""

_current: ContextVar[Observation | None] = ContextVar("observation", default=None)

current = _current.get
"""The observation of the request that the current task works for, or None."""

nothing = _current.set
"""Called with None where a request is not observed: a pipelined one begins in the context of the last."""


def begin(request_id: str, scope: Mapping[str, Any], surface: str, route: str) -> Observation:
    """Observe the request of ``scope`` in the current task."""
    method = scope.get("method", "GET")
    seen = Observation(request_id, surface, route, method, trace_context.read(scope["headers"]))
    _current.set(seen)
    for each in observers:
        each.began(seen)
    return seen


def refused(
    request_id: str, scope: Mapping[str, Any], surface: str, route: str, error: ApiError
) -> None:
    """Observe a request that no application answers."""
    if observers:
        begin(request_id, scope, surface, route).end(error.status, error)


def why(failure: ApiError) -> tuple[str, str | None]:
    """The code of ``failure`` and the reason, as the log has them."""
    return _code_of(failure), reason_of(failure)


def _code_of(failure: BaseException) -> str:
    """The contract's code, or its type of error where it has no code; of any other, the class."""
    if isinstance(failure, ApiError):
        return failure.code or failure.type
    return type(failure).__name__
