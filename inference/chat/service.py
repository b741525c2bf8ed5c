"""One chat request: check it, admit it, relay a backend's answer, record the row.

Streamed and whole answers differ only in their relay (``relays``) and in the client's headers.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final, Protocol

from django.conf import settings

from inference.chat import admission, captures, metrics
from inference.chat.exchange import Client, Egress, Ended, Exchange
from inference.chat.meter import Meter
from inference.chat.preparation import Call, Preparation
from inference.chat.reconciliation import Reconciler
from svc_project.lib.asgi.drain import drain
from svc_project.lib.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    RateLimitExceeded,
    ServerShuttingDown,
)
from svc_project.lib.limits.buckets import Limiter
from svc_project.lib.monitoring.logs import log_unexpected
from usage.ledger.ledger import Ledger
from usage.receipts import Receipt

log = logging.getLogger(__name__)

_COUNT_SECONDS: Final = 10.0
"""Timeout of counting an answer, which waits for it; after it the row has no count."""


class Sink(Client, Protocol):
    """Where an answer goes."""

    @property
    def status(self) -> int | None:
        """The HTTP status that was sent, or None before it was sent."""

    def admit(self) -> None:
        """Count the request as in flight. Raises ``ServerOverloaded``."""

    async def finish(self, last: bytes) -> None:
        """Send the answer's last bytes."""

    async def fail(self, error: ApiError) -> None:
        """Send ``error``: as a status when nothing was sent yet, as an in-band frame otherwise."""


@dataclass(slots=True)
class ChatService:
    """Serves chat requests from the catalog, the limits, the backends and the ledger."""

    preparation: Preparation
    limiter: Limiter
    egress: Egress
    ledger: Ledger
    reconciler: Reconciler

    async def complete(self, call: Call, sink: Sink) -> None:
        """Admit the request, relay a backend's answer, write the row, then send the last bytes.

        Raises ``RateLimitExceeded`` or ``ServerOverloaded`` when the request is not admitted (no
        row is written then), or the failure of the exchange when nothing was sent yet.
        """
        reservation = await self._reserve(call)
        try:
            sink.admit()
            exchange = await self._admit(call)
        except BaseException:
            reservation.refund()
            raise
        ended = await exchange.run(sink, call.created)
        reservation.settle(ended.meter.reported_input + ended.meter.generated_tokens)
        failure = await self._record(call, ended, _failure_of(ended, sink), sink)
        ended.release()
        if call.captured:
            await captures.keep(call.request_id, call.principal.organization_id, ended.content)
        if failure is not None:
            await sink.fail(failure)
            return
        self.reconciler.offer(ended.meter, call.model.tokenizer, call.request)
        await sink.finish(ended.last())

    async def _reserve(self, call: Call) -> admission.Reservation:
        """Reserve the limits. Raises ``RateLimitExceeded``."""
        charges = admission.charges_for(
            call.principal,
            call.model,
            admission.estimate_prompt(call.body_bytes),
            call.request.output_cap,
        )
        preparation = self.preparation
        try:
            return await admission.reserve(self.limiter, call.model.id, charges, preparation.spent)
        except RateLimitExceeded as refusal:
            admission.count_refusal(refusal, call.principal, call.model)
            if "x-should-retry" in refusal.headers:
                # The request can never fit, so repeating it is charged like a refused request.
                limits = call.principal.organization_limits
                preparation.refused.charge(
                    call.principal.organization_id, limits.requests_per_minute, call.body_bytes
                )
            raise

    async def _admit(self, call: Call) -> Exchange:
        """Lease a slot of a backend and note the admission: from here on a row is owed.

        Raises ``ServerOverloaded`` or ``BackendUnavailable``.
        """
        meter = Meter(call.identity(), call.arrived, call.largest_count)
        lease = await self.egress.pool.lease(call.model.deployments, call.principal.organization_id)
        try:
            await self.ledger.admit_durably(meter.admitted())
        except BaseException:
            lease.release()
            raise
        return Exchange(
            call.request,
            call.model,
            lease,
            meter,
            self.egress,
            note_progress=self.ledger.progress,
            kept_bytes=settings.SVC_CAPTURE_BYTES if call.captured else 0,
        )

    async def _record(
        self, call: Call, ended: Ended, failure: ApiError | None, sink: Sink
    ) -> ApiError | None:
        """Write the row; return the failure that the client is sent, or None.

        An answer whose row cannot be stored anywhere is withheld: ``InternalError``.
        """
        meter = ended.meter
        if not meter.reported and meter.pieces:
            failure = await self._count(call, meter) or failure
        receipt = meter.receipt(failure, _http_status(failure, sink))
        if not meter.reported and receipt.generated_output_tokens:
            self._count_unreported_tokens(ended, receipt)
        metrics.observe(receipt)
        try:
            await self.ledger.record(receipt, begun=sink.status is not None)
        except InternalError as error:
            return failure or error
        return failure

    async def _count(self, call: Call, meter: Meter) -> ApiError | None:
        """Put the gateway's own token counts into ``meter``; on failure the count of pieces stays.

        Returns why the request ended meanwhile, or None.
        """
        try:
            async with asyncio.timeout(_COUNT_SECONDS):
                await self.reconciler.count_unreported(meter, call.model.tokenizer, call.request)
        except asyncio.CancelledError:
            (own := asyncio.current_task()) and own.uncancel()
            return ServerShuttingDown() if drain.draining else ClientDisconnected()
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            if not meter.identity.streamed:
                meter.counted_output = admission.estimate_prompt(len(meter.output_text.encode()))
        return None

    def _count_unreported_tokens(self, ended: Ended, receipt: Receipt) -> None:
        """Count tokens that a backend generated and never reported: no customer pays for them."""
        tokens = receipt.generated_output_tokens
        metrics.unreported_tokens.add(ended.backend.name, receipt.model_identifier, by=tokens)
        self.egress.pool.count_unreported(ended.backend, tokens)


def _failure_of(ended: Ended, sink: Sink) -> ApiError | None:
    """Return the failure for the row: that of the client, unless the client has the whole answer."""
    if sink.disconnected and not (ended.failure is None and ended.meter.finish_delivered):
        return ClientDisconnected()
    return ended.failure


def _http_status(failure: ApiError | None, sink: Sink) -> int:
    """Return the status for the row: 499 if the client disconnected, 200 for a begun stream."""
    if isinstance(failure, ClientDisconnected):
        return failure.status
    return sink.status or (200 if failure is None else failure.status)
