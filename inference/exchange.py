"""One admitted request's exchange with a backend, from dispatch to the answer's last piece."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from math import inf
from typing import Protocol

import aiohttp

from inference.answers import CompletionObject
from inference.backends import BackendClient, NothingRan
from inference.dialects import RunningUsage
from inference.health_checks import Questions
from inference.metering import Meter
from inference.pool import BackendPool, Lease
from inference.relay import StreamRelay, relay_completion
from inference.snapshot import BackendRef, PublishedModel
from inference.verdict import OutOfTime, fingerprint, report, report_nothing_ran
from inference.wire import ChatRequest
from svc_project.lib.drain import drain
from svc_project.lib.errors import (
    ApiError,
    BackendProtocolError,
    BackendTimeout,
    ClientDisconnected,
    InternalError,
    ServerShuttingDown,
)
from svc_project.lib.logs import log_unexpected
from svc_project.lib.poison import Fingerprint, Poison
from svc_project.lib.sse import EventReader, FrameTooLarge
from usage.ledger import ledger

log = logging.getLogger(__name__)

LARGEST_ANSWER = 64 * 1024 * 1024
"""Of a whole answer: it is held in memory."""

LARGEST_STREAM = 256 * 1024 * 1024
"""Bytes of a streamed answer: 1 KiB for each token of an answer of 262 144. It is not held, so this
ends a backend that never does."""

LARGEST_TEXT = 32 * 1024 * 1024
"""Of a streamed answer's text, in characters with 64 more for each piece, because the meter holds
them: 128 for each token of an answer of 262 144, where a real one has 4 and its piece."""

LARGEST_EVENT = 1024 * 1024
PROGRESS_SECONDS = 1.0
_CLOCK_SLACK = 0.01


class Client(Protocol):
    """Where the pieces of an answer go while they come."""

    @property
    def gone(self) -> bool:
        """Whether the client has hung up."""

    @property
    def backed_up(self) -> bool:
        """Whether so much waits for the client to read it that the next ``send`` waits too."""

    async def send(self, frames: bytes) -> None:
        """Hand ``frames`` to the client's socket; nothing when it is gone."""


@dataclass(frozen=True, slots=True)
class Egress:
    """What an exchange needs of the outside: slots, the HTTP client, who breaks servers, and a
    way to ask a backend how it is.
    """

    pool: BackendPool
    client: BackendClient
    poison: Poison
    questions: Questions


class Exchange:
    """Asks one backend, or a second one where the first cannot have begun.

    ``stop`` ends it early from outside: when the client has left, or the server stops.
    """

    def __init__(
        self,
        request: ChatRequest,
        model: PublishedModel,
        lease: Lease,
        meter: Meter,
        egress: Egress,
        *,
        kept_bytes: int = 0,
    ) -> None:
        self._kept_bytes = kept_bytes if request.stream else LARGEST_ANSWER
        self._request = request
        self._model = model
        self._lease = lease
        self._meter = meter
        self._egress = egress
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        self._due = -inf
        """When ``_timeout`` ends the exchange, on the loop's clock."""
        self._deadline = self._loop.time() + lease.deployment.backend.timeouts.total
        self._stopped: ApiError | None = None
        self._ended = False
        self._sending = False
        self._response: aiohttp.ClientResponse | None = None
        self.relay: StreamRelay | None = None
        self.completion: CompletionObject | None = None
        self.received: list[bytes] = []
        """The answer's bytes; of a streamed one the first ``kept_bytes``, and the read they end in."""
        self.received_bytes = 0
        self.sent_body = b""
        """The body as it was sent to the backend."""

    async def run(self, client: Client, created: int) -> ApiError | None:
        """The whole exchange; returns how it failed, or None.

        Never raises: whatever happens, the caller has a row to write.
        """
        failure = await self._run(client, created)
        try:
            caller = self._meter.identity.api_key_id
            if report(failure, self._lease, self._egress.poison, self._fingerprint, caller):
                self._egress.questions.ask(self.backend)
        finally:
            self._ended = True
            self._lease.release()
        return failure

    async def _run(self, client: Client, created: int) -> ApiError | None:
        try:
            if self._stopped is not None:
                return self._stopped
            async with self._timeout:
                self._response = await self._open()
                if self._request.stream:
                    await self._stream(self._response, client, created)
                else:
                    await self._whole(self._response, client, created)
        except ApiError as error:
            return self._stopped or error
        except TimeoutError:
            if self._stopped is None and self._sending:
                # The backend's whole time went by while the client read too slowly.
                return ClientDisconnected()
            if self._loop.time() >= self._deadline - _CLOCK_SLACK:
                return self._stopped or OutOfTime()
            return self._stopped or BackendTimeout()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return ServerShuttingDown() if drain.draining else ClientDisconnected()
        except Exception as error:
            log_unexpected(log, self._meter.identity.request_id, error)
            return InternalError()
        return None

    @property
    def backend(self) -> BackendRef:
        """The backend that was asked last."""
        return self._lease.deployment.backend

    def close(self, *, complete: bool) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        if self._response is not None:
            if complete:
                self._response.release()
            else:
                self._response.close()

    def stop(self, reason: ApiError) -> None:
        """End the exchange because of ``reason``; before ``run`` nothing is asked at all.

        When the client has left, a backend with running usage is aborted as soon as it has
        reported once; another is read on for as long as its operator allows, so that its figures
        are real.
        """
        if self._ended:
            return
        # The first reason is the row's. A later one may only end it sooner: a server that stops
        # waits for no figures.
        self._stopped = self._stopped or reason
        now = self._loop.time()
        if isinstance(reason, ClientDisconnected) and not self._reports_while_running:
            now += self._lease.deployment.backend.timeouts.disconnect_drain
        self._deadline = min(self._deadline, now)
        if self._timeout.when() is not None and not self._timeout.expired():
            self._due = self._deadline
            self._timeout.reschedule(self._due)

    @property
    def _reports_while_running(self) -> bool:
        dialect = self._lease.deployment.backend.running_usage
        asked = bool(self._request.stream) and dialect is not RunningUsage.NONE
        return asked and self._meter.reported

    def _fingerprint(self) -> Fingerprint:
        return fingerprint(
            self._egress.poison, self._meter.identity.api_key_id, self._request, self._model
        )

    def _wait_at_most(self, seconds: float) -> None:
        due = min(self._loop.time() + seconds, self._deadline)
        # Moving a timer costs as much as a read; up to a twentieth early is near enough.
        if not 0 <= due - self._due < seconds / 20:
            self._due = due
            self._timeout.reschedule(due)

    async def _open(self) -> aiohttp.ClientResponse:
        failed = None
        while True:
            deployment = self._lease.deployment
            self._wait_at_most(deployment.backend.timeouts.first_byte)
            self.sent_body = self._request.backend_body(
                deployment.model,
                running_usage=deployment.backend.running_usage,
                output_cap_field=deployment.backend.output_cap_field,
                extra_fields=deployment.backend.extra_fields,
                send_tools=self._model.tool_calling,
            )
            try:
                response = await self._egress.client.post(
                    deployment, self.sent_body, streamed=bool(self._request.stream)
                )
                self._lease.trial.answered()
                return response
            except NothingRan as nothing:
                report_nothing_ran(nothing, self._lease, self._egress.poison)
                if self._stopped is not None:
                    # Nothing ran, so there is nothing to learn: no other backend works for this.
                    raise self._stopped from None
                if failed is not None:
                    raise nothing.error from None
                failed = nothing
                self._lease.release()
                try:
                    self._lease = await self._egress.pool.lease(
                        self._model.deployments,
                        self._meter.identity.organization_id,
                        without=deployment,
                    )
                except ApiError:
                    raise nothing.error from None

    async def _stream(self, response: aiohttp.ClientResponse, client: Client, created: int) -> None:
        reader = EventReader(LARGEST_EVENT)
        backend = self._lease.deployment.backend
        relay = self.relay = StreamRelay(self._meter, created, backend.running_usage)
        idle = backend.timeouts.idle
        size = 0
        while not relay.done:
            self._wait_at_most(idle)
            read = await self._read(response)
            size += len(read)
            if size > LARGEST_STREAM or (size > LARGEST_TEXT and self._meter.held() > LARGEST_TEXT):
                raise BackendProtocolError("The model server's answer is too large.")
            try:
                events = reader.feed(read) if read else [last for last in [reader.rest()] if last]
                frames = relay.take(events)
            except FrameTooLarge:
                raise BackendProtocolError("The model server sent too large an event.") from None
            except ApiError:
                await self._send(client, relay.unsent, relay)
                raise
            await self._send(client, frames, relay)
            if not read:
                break
            if client.gone and self._stopped is not None and self._reports_while_running:
                raise self._stopped
        if not relay.finished:
            raise BackendProtocolError("The model server ended its answer early.")

    async def _send(self, client: Client, frames: bytes, relay: StreamRelay) -> None:
        if frames and not client.gone:
            if client.backed_up:
                # It is the client's turn now; the server's stall limit ends one that never reads.
                self._wait_at_most(self._deadline - self._loop.time())
            self._sending = True
            await client.send(frames)
            self._sending = False
            if not client.gone:
                self._meter.delivered()
                self._meter.finish_delivered = relay.finished
        if (progress := self._meter.progress(PROGRESS_SECONDS)) is not None:
            ledger.progress(progress)

    async def _whole(self, response: aiohttp.ClientResponse, client: Client, created: int) -> None:
        self._meter.began()
        idle = self._lease.deployment.backend.timeouts.idle
        size = 0
        while True:
            self._wait_at_most(idle)
            read = await self._read(response)
            if not read:
                break
            size += len(read)
            if size > LARGEST_ANSWER:
                raise BackendProtocolError("The model server's answer is too large.")
        self.completion = relay_completion(b"".join(self.received), self._meter, created)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        read = await self._egress.client.read_some(response)
        if self.received_bytes < self._kept_bytes:
            self.received.append(read)
        self.received_bytes += len(read)
        return read
