"""One admitted request's exchange with a backend, from dispatch to the answer's last piece."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from core.asgi.drain import absorbed_cancellation
from core.asgi.http import Stoppable
from core.backends.quarantine import Fingerprint, Quarantine
from core.deadlines import Deadline
from core.errors import (
    ApiError,
    BackendProtocolError,
    BackendTimeout,
    ClientDisconnected,
    InternalError,
    drop_traceback,
    reason_of,
)
from core.http_client.request import HttpError
from core.http_client.response import Response
from core.monitoring import observation
from core.monitoring.logs import log_unexpected
from inference.backends.cache_salt import salted
from inference.backends.client import BackendClient, ConnectionLost, NotStarted
from inference.backends.health_checks import HealthChecks
from inference.backends.outcomes import TotalTimeout, fingerprint, report, report_not_started
from inference.backends.pool import BackendPool, Lease
from inference.backends.usage_dialects import UsageDialects
from inference.catalog.catalog import Catalog
from inference.catalog.snapshot import BackendRef, DeploymentRef, PublishedModel
from inference.chat.captures import Content
from inference.chat.meter import Meter
from inference.chat.relays import Relay
from inference.chat.relays.stream import StreamRelay
from inference.chat.relays.whole import WholeRelay
from inference.wire import ChatRequest
from inference.wire.dialects import PrefixCache, RunningUsage
from usage.receipts import Progress

log = logging.getLogger(__name__)

PROGRESS_SECONDS: Final = 1.0
_CLOCK_SLACK: Final = 0.01


class ExchangeTimeouts(Deadline):
    """The timeouts of an exchange, which ends ``total`` seconds after it was made.

    What runs inside is cancelled when the current timeout expires (``Deadline``).
    """

    __slots__ = ("_total_due",)

    def __init__(self, total: float) -> None:
        super().__init__()
        self._total_due = self._loop.time() + total

    @property
    def total_expired(self) -> bool:
        return self._loop.time() >= self._total_due - _CLOCK_SLACK

    def wait_at_most(self, seconds: float) -> None:
        """Let the next wait take ``seconds``, or until the exchange must end if that is sooner."""
        self.due = min(self._loop.time() + seconds, self._total_due)

    def wait_until_deadline(self) -> None:
        """Let the next wait take as long as the exchange may."""
        self.due = self._total_due

    def end_within(self, seconds: float) -> None:
        """End the exchange at most ``seconds`` from now, with a wait that has begun."""
        now = self._loop.time()
        self._total_due = self.due = min(self._total_due, now + seconds)
        if self.due <= now:
            self._loop.call_soon(self.expire)


class Client(Protocol):
    """Receives the frames of a streamed answer."""

    @property
    def disconnected(self) -> bool:
        """Whether the client closed its connection."""

    @property
    def backed_up(self) -> bool:
        """Whether the socket's buffer is full, so that the next ``send_frames`` waits for the client."""

    def follow(self, exchange: Stoppable) -> None:
        """Stop ``exchange`` when the client disconnects, or already has, and when the server stops."""

    async def send_frames(self, frames: bytes) -> None:
        """Write ``frames`` to the client's socket; does nothing once the client disconnected."""


@dataclass(frozen=True, slots=True)
class Egress:
    """Slots, the HTTP client, requests that break servers, health checks, usage dialects, and the catalog."""

    pool: BackendPool
    client: BackendClient
    quarantine: Quarantine
    health_checks: HealthChecks
    usage_dialects: UsageDialects
    catalog: Catalog

    def serving(self, model: PublishedModel) -> tuple[DeploymentRef, ...]:
        """The deployments of ``model`` now; those that it had when the request began, if it is not known."""
        return self.catalog.snapshot.models.get(model.id, model).deployments


@dataclass(frozen=True, slots=True)
class Ended:
    """How an exchange ended.

    ``failure`` is None for a complete answer; ``meter`` has its token counts and times; ``backend``
    made the last attempt; ``last`` makes the client's last bytes from the meter, of a complete
    answer only. ``release`` keeps the connection of a complete answer; it is called once the row is
    durable, because a connection whose answer has not ended by then is closed.
    """

    failure: ApiError | None
    meter: Meter
    backend: BackendRef
    content: Content
    last: Callable[[], bytes]
    release: Callable[[], object]


class Exchange:
    """Sends a request to one backend and, if that one cannot have started it, to a second one.

    ``note_progress`` journals the counts about once a second while it runs. ``stop`` ends it early
    from outside: when the client disconnected, or the server stops.
    """

    def __init__(  # noqa: PLR0913  # each is a collaborator of its own
        self,
        request: ChatRequest,
        model: PublishedModel,
        lease: Lease,
        meter: Meter,
        egress: Egress,
        *,
        note_progress: Callable[[Progress], None],
        kept_bytes: int = 0,
    ) -> None:
        self._request = request
        self._model = model
        self._lease = lease
        self._meter = meter
        self._egress = egress
        self._note_progress = note_progress
        self._timeouts = ExchangeTimeouts(lease.deployment.backend.timeouts.total)
        self._stopped: ApiError | None = None
        self._ended = False
        self._sending = False
        self._response: Response | None = None
        self._content = Content(kept_bytes)
        self._relay: Relay | None = None
        self._asked = RunningUsage.NONE
        self._posts = 0

    async def run(self, client: Client, created: int) -> Ended:
        """Run the exchange; ``created`` is the answer's time, in seconds since the epoch.

        Never raises, because the caller must write a row.
        """
        try:
            client.follow(self)
            failure = await self._run(client, created)
            if self._stopped is not None:
                # The frames that may have raised it hold this exchange.
                drop_traceback(self._stopped)
            self._report(failure)
        except Exception as error:
            log_unexpected(log, self._meter.identity.request_id, error)
            failure = InternalError()
        self._ended = True
        self._meter.model_server = self._lease.deployment.backend.name
        self._meter.attempts = self._posts
        if self._meter.reported:
            self._lease.learn(self._meter.reported_input, self._meter.cached_input)
        self._lease.release()
        if (seen := observation.current()) is not None:
            seen.end_attempt(failure)
        answer = self._response
        if failure is not None and answer is not None:
            # At once: the model server may go on generating until its connection closes.
            answer.close()
        return Ended(
            failure=failure,
            meter=self._meter,
            backend=self._lease.deployment.backend,
            content=self._content,
            last=bytes if self._relay is None else self._relay.last,
            release=bytes if failure is not None or answer is None else answer.release,
        )

    def stop(self, reason: ApiError) -> None:
        """End the exchange because of ``reason``; when called before ``run``, nothing is sent.

        After a client disconnected, a backend with running usage is aborted once it has reported
        the usage of all that it sent. The answer of any other is read on for ``disconnect_drain``
        seconds, to get its token counts.
        """
        if self._ended:
            return
        # The row gets the first reason. A later one may only shorten the wait: a server that
        # stops does not wait for token counts.
        self._stopped = self._stopped or reason
        is_all_reported = self._relay is not None and self._relay.is_all_reported
        waits = isinstance(reason, ClientDisconnected) and not is_all_reported
        drain_seconds = self._lease.deployment.backend.timeouts.disconnect_drain
        self._timeouts.end_within(drain_seconds if waits else 0.0)

    async def _run(self, client: Client, created: int) -> ApiError | None:
        try:
            if self._stopped is not None:
                return self._stopped
            with self._timeouts:
                self._response = await self._open()
                await self._relay_answer(self._response, client, created)
        except ApiError as error:
            if self._stopped is not None:
                return self._stopped
            if self._response is not None:
                # What failed before an answer began is in the log (``BackendClient``).
                self._log(error)
            return error
        except TimeoutError:
            if self._stopped is None and self._sending:
                # The total timeout expired while the client read too slowly.
                return ClientDisconnected()
            return self._stopped or self._late()
        except asyncio.CancelledError:
            return absorbed_cancellation()
        return None

    def _late(self) -> BackendTimeout:
        """The error for a timeout that expired, which is logged."""
        timeouts = self._lease.deployment.backend.timeouts
        late: BackendTimeout
        if self._timeouts.total_expired:
            late = TotalTimeout().because(f"not complete within {timeouts.total:g} s")
        elif self._response is None:
            late = BackendTimeout().because(f"no answer within {timeouts.first_byte:g} s")
        else:
            late = BackendTimeout().because(f"nothing came for {timeouts.idle:g} s")
        self._log(late)
        return late

    def _log(self, failure: ApiError) -> None:
        name = self._lease.deployment.backend.name
        log.warning("backend %s: %s", name, reason_of(failure))

    async def _open(self) -> Response:
        """Send the request and return the answer once its head has arrived."""
        failed = None
        while True:
            deployment = self._lease.deployment
            try:
                if not self._request.stream or self._posts > 1:
                    # The second backend gets it once where the first has got it twice.
                    return await self._post(RunningUsage.NONE)
                return await self._egress.usage_dialects.post(deployment, self._post)
            except NotStarted as nothing:
                report_not_started(nothing, self._lease, self._egress.quarantine)
                if self._stopped is not None:
                    # Nothing was started, so there are no token counts to wait for: no retry.
                    raise self._stopped from None
                if failed is not None:
                    raise nothing.error from None
                failed = nothing
                self._lease.release()
                try:
                    self._lease = await self._egress.pool.lease(
                        self._egress.serving(self._model), self._lease.prompt, without=deployment
                    )
                except ApiError:
                    raise nothing.error from None

    async def _post(self, running_usage: RunningUsage) -> Response:
        """Send the request, which asks for ``running_usage``, unless the exchange was stopped."""
        if self._stopped is not None:
            raise self._stopped
        deployment, self._asked = self._lease.deployment, running_usage
        self._posts += 1
        self._timeouts.wait_at_most(deployment.backend.timeouts.first_byte)
        extra_fields = deployment.extra_fields
        if extra_fields is None:
            extra_fields = deployment.backend.extra_fields
        if (cache := deployment.backend.prefix_cache) is not PrefixCache.SHARED:
            extra_fields = salted(extra_fields, cache, self._meter.identity.organization_id)
        self._content.sent = self._request.backend_body(
            deployment.model,
            running_usage=running_usage,
            output_cap_field=deployment.backend.output_cap_field,
            extra_fields=extra_fields,
            send_tools=self._model.tool_calling,
        )
        streamed = bool(self._request.stream)
        post = self._egress.client.post
        if (seen := observation.current()) is None:
            response = await post(deployment, self._content.sent, streamed=streamed)
        else:
            backend = deployment.backend
            attempt = seen.begin_attempt(backend.name, deployment.model, backend.base_url)
            try:
                response = await post(
                    deployment, self._content.sent, streamed=streamed, trace=attempt.trace
                )
            except BaseException as error:
                seen.end_attempt(error.error if isinstance(error, NotStarted) else error)
                raise
        self._lease.report.answered()
        return response

    async def _relay_answer(self, response: Response, client: Client, created: int) -> None:
        """Read the answer to its end, relay it to the client, and journal the progress."""
        backend = self._lease.deployment.backend
        relay: Relay = (
            StreamRelay(self._meter, created, self._asked)
            if self._request.stream
            else WholeRelay(self._meter, created)
        )
        self._relay = relay
        captured = self._content if self._content.kept_bytes else None
        begun = False
        while not relay.done:
            self._timeouts.wait_at_most(backend.timeouts.idle)
            try:
                read = await response.read()
            except HttpError as error:
                kind = type(error).__name__
                raise ConnectionLost().because(f"connection lost: {kind}") from None
            if captured is not None:
                captured.take(read)
            try:
                frames = relay.feed(read)
            except ApiError:
                if relay.unsent:
                    await self._send(client, relay.unsent, relay)
                raise
            if not begun and self._meter.first_token is not None:
                begun = True
                self._lease.answered()
            if frames:
                await self._send(client, frames, relay)
            if not read:
                break
            if (progress := self._meter.progress(PROGRESS_SECONDS)) is not None:
                self._note_progress(progress)
            if client.disconnected and self._stopped and relay.is_all_reported:
                raise self._stopped
        if not relay.finished:
            raise BackendProtocolError("The model server ended its answer without a finish reason.")

    async def _send(self, client: Client, frames: bytes, relay: Relay) -> None:
        if client.disconnected:
            return
        if client.backed_up:
            # Wait for the client now; the gateway's write timeout ends one that never reads.
            self._timeouts.wait_until_deadline()
        self._sending = True
        await client.send_frames(frames)
        self._sending = False
        if not client.disconnected:
            self._meter.mark_delivered()
            self._meter.finish_delivered = relay.finished

    def _report(self, failure: ApiError | None) -> None:
        """Report the outcome to the backend's health, the quarantine and the usage dialects."""
        caller = self._meter.identity.api_key_id
        if report(failure, self._lease, self._egress.quarantine, self._fingerprint, caller):
            self._egress.health_checks.check(self._lease.deployment.backend)
        if isinstance(self._relay, StreamRelay):
            seen, version = self._relay.running_usage, self._meter.fingerprint
            self._egress.usage_dialects.ended(self._lease.deployment, self._asked, seen, version)

    def _fingerprint(self) -> Fingerprint:
        return fingerprint(
            self._egress.quarantine, self._meter.identity.api_key_id, self._request, self._model
        )
