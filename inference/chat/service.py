"""One chat request: check it, admit it, relay a backend's answer, record the row.

Streamed and whole answers differ only in their relay (``relays``) and in the client's headers.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from core.asgi.drain import absorbed_cancellation
from core.errors import ApiError, ClientDisconnected, InternalError, RateLimitExceeded
from core.limits.buckets import Limiter
from core.monitoring import observation
from core.monitoring.logs import log_unexpected
from inference.backends.metrics import cached_prompt_tokens, prompt_tokens
from inference.backends.prompts import Prompt, prompt_of
from inference.chat import admission, captures, metrics
from inference.chat.exchange import Egress, Ended, Exchange
from inference.chat.keep_alive import Comments, Sink
from inference.chat.meter import Meter
from inference.chat.preparation import ChatCall, Preparation
from inference.chat.reconciliation import Reconciler
from usage import metered
from usage.ledger.ledger import Ledger
from usage.receipts import Receipt

log = logging.getLogger(__name__)

_COUNT_SECONDS: Final = 10.0
"""Timeout of counting an answer, which waits for it; after it the row has no count."""


@dataclass(slots=True)
class ChatService:
    """Serves chat requests from the catalog, the limits, the backends and the ledger."""

    preparation: Preparation
    limiter: Limiter
    egress: Egress
    ledger: Ledger
    reconciler: Reconciler

    async def complete(self, call: ChatCall, sink: Sink) -> None:
        """Admit the request, relay a backend's answer, write the row, then send the last bytes.

        Raises ``RateLimitExceeded`` or ``ServerOverloaded`` when the request is not admitted (no
        row is written then), or the failure of the exchange when nothing was sent yet. Of a model with
        keep-alive comments these are in-band, too, once a comment was sent.
        """
        reservation = await self._reserve(call)
        seconds = call.model.keep_alive_seconds
        if seconds is None or not call.request.stream:
            await self._complete(call, reservation, sink)
            return
        with Comments(sink, seconds, call.request_id) as commented:
            try:
                await self._complete(call, reservation, commented)
            except Exception as error:
                if not commented.status:
                    raise
                failure = error if isinstance(error, ApiError) else InternalError()
                if failure is not error:
                    log_unexpected(log, call.request_id, error)
                await commented.fail(failure)

    async def _complete(
        self, call: ChatCall, reservation: admission.Reservation, sink: Sink
    ) -> None:
        """Do all that follows the reservation."""
        try:
            sink.admit()
            exchange = await self._admit(call)
        except BaseException:
            reservation.refund()
            raise
        ended = await exchange.run(sink, call.created)
        sink.conclude()
        failure = _failure_of(ended, sink)
        reservation.settle(_used_prompt(call, ended, failure) + ended.meter.generated_tokens)
        failure = await self._record(call, ended, failure, sink)
        ended.release()
        if call.captured:
            await captures.keep(call.request_id, call.principal.organization_id, ended.content)
        if failure is not None:
            if call.principal.failed_content_hours and not isinstance(failure, ClientDisconnected):
                await captures.keep_failed(
                    call.request_id, call.principal, call.request, ended.meter.output_text
                )
            await sink.fail(failure)
            return
        self.reconciler.offer(ended.meter, call.model.tokenizer, call.request)
        await sink.finish(ended.last())

    async def _reserve(self, call: ChatCall) -> admission.Reservation:
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
                principal = call.principal
                preparation.refused.charge(
                    principal.organization_id,
                    principal.api_key_id,
                    principal.organization_limits.requests_per_minute,
                    call.body_bytes,
                )
            raise

    async def _admit(self, call: ChatCall) -> Exchange:
        """Lease a slot of a backend and note the admission: from here on a row is owed.

        Raises ``ServerOverloaded`` or ``BackendUnavailable``.
        """
        meter = Meter(call.identity(), call.arrived, call.largest_count)
        began = time.perf_counter()
        deployments, organization_id = call.model.deployments, call.principal.organization_id
        priority = call.priority
        if len(deployments) > 1:
            prompt = prompt_of(call.request, organization_id, call.body_bytes, priority)
        else:
            prompt = Prompt(organization_id, call.body_bytes, priority=priority)
        lease = await self.egress.pool.lease(deployments, prompt)
        queued = time.perf_counter() - began
        meter.model_server, meter.queue_ms = lease.deployment.backend.name, round(queued * 1000)
        if (seen := observation.current()) is not None:
            seen.queue_seconds = queued
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
        self, call: ChatCall, ended: Ended, failure: ApiError | None, sink: Sink
    ) -> ApiError | None:
        """Write the row; return the failure that the client is sent, or None (``usage.metered``)."""
        meter = ended.meter
        if meter.unreported_pieces:
            failure = await self._count(call, meter) or failure
        receipt = meter.receipt(failure, metered.http_status(failure, sink.status))
        self._count_usage(call, ended, receipt)
        metrics.observe(receipt)
        return await metered.record(self.ledger, receipt, failure, begun=bool(sink.status))

    async def _count(self, call: ChatCall, meter: Meter) -> ApiError | None:
        """Put the gateway's own token counts into ``meter``; on failure the count of pieces stays.

        Returns why the request ended meanwhile, or None.
        """
        try:
            async with asyncio.timeout(_COUNT_SECONDS):
                await self.reconciler.count_unreported(meter, call.model.tokenizer, call.request)
        except asyncio.CancelledError:
            return absorbed_cancellation()
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            if not meter.identity.streamed:
                meter.counted_output = admission.estimate_prompt(
                    len(meter.unreported_text.encode())
                )
        return None

    def _count_usage(self, call: ChatCall, ended: Ended, receipt: Receipt) -> None:
        """Count tokens that a backend had cached, and those that it never reported, for which no customer
        pays, and improbable reports, which are billed: the report is the meter of record."""
        meter, name, model = ended.meter, ended.backend.name, receipt.model_identifier
        if tokens := meter.unreported_tokens:
            metrics.unreported_tokens.add(name, model, by=tokens)
            self.egress.pool.count_unreported(ended.backend, tokens)
        if meter.cached_input is not None:
            prompt_tokens.add(name, model, by=meter.reported_input)
            cached_prompt_tokens.add(name, model, by=meter.cached_input)
        if exceeded := call.exceeded_by(meter.reported_input, meter.reported_output):
            metrics.improbable_usage.add(name, model, exceeded)
            self.egress.pool.count_improbable(ended.backend, exceeded)


def _used_prompt(call: ChatCall, ended: Ended, failure: ApiError | None) -> int:
    """Return the prompt's tokens for the limits: as reported, else as reserved if it was read.

    A model server reads the prompt before the first token, so a client that disconnects then is
    charged for it. A request that failed otherwise, without a token, is refunded.
    """
    meter = ended.meter
    was_read = isinstance(failure, ClientDisconnected) and bool(ended.content.sent)
    if meter.reported or not (meter.pieces or was_read):
        return meter.reported_input
    return admission.estimate_prompt(call.body_bytes)


def _failure_of(ended: Ended, sink: Sink) -> ApiError | None:
    """Return the failure for the row: that of the client, unless the client has the whole answer."""
    if sink.disconnected and not (ended.failure is None and ended.meter.finish_delivered):
        return ClientDisconnected()
    return ended.failure
