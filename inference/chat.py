"""The story of one chat request: checked, admitted, asked, relayed, written down.

``prepare`` is everything that can be refused without taking anything, in the order of
docs/api/inference.md ("Order of checks"); ``complete`` is the rest. Streamed and whole answers
differ only in the sink.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import msgspec
from django.conf import settings

from accounts.principal import Principal
from inference import admission, captures, figures, schema_subset
from inference.answers import encode
from inference.catalog import Catalog
from inference.exchange import Client, Egress, Exchange
from inference.metering import Identity, Meter
from inference.reconciliation import Reconciler
from inference.snapshot import PublishedModel, StampedPrice
from inference.spent_limits import SpentLimits
from inference.verdict import RequestBreaksServers, fingerprint
from inference.wire import ChatRequest, glimpse_model, model_of, parse_body
from svc_project.lib.drain import drain
from svc_project.lib.errors import (
    ApiError,
    ClientDisconnected,
    InternalError,
    ModelDoesNotSupportStructuredOutput,
    ModelDoesNotSupportTools,
    RateLimitExceeded,
    RequestTooLarge,
    ServerShuttingDown,
)
from svc_project.lib.fair_thread import LARGE_BODY, FairThread
from svc_project.lib.ids import NIL_UUID
from svc_project.lib.logs import log_unexpected
from svc_project.lib.ratelimits import Limiter
from svc_project.lib.refused_requests import RefusedRequests
from usage import throttles
from usage.ledger import Ledger
from usage.receipts import Receipt

log = logging.getLogger(__name__)

_COUNT_SECONDS = 10.0
"""What counting an answer may take before its row goes without; the answer waits for it."""

SMALL_BODY = 16 * 1024
"""Bytes of a body that is read whatever is left of the limits: it costs less than a millisecond."""

_CONTEXTS = 16
"""How many published contexts a report of tokens may be."""


class Call(msgspec.Struct, frozen=True):
    """A chat request that passed every check but limits and capacity.

    ``arrived`` is on the ``perf_counter`` clock; ``created`` in seconds since the epoch.
    """

    request_id: str
    arrived: float
    created: int
    principal: Principal
    request: ChatRequest
    model: PublishedModel
    price: StampedPrice
    body_bytes: int
    captured: bool


class Sink(Client, Protocol):
    """Where an answer goes: one for streams, one for whole bodies."""

    @property
    def status(self) -> int | None:
        """The status that was sent, or None while nothing was."""

    def admit(self) -> None:
        """Count the request as in flight. Raises ``ServerOverloaded``."""

    def follow(self, exchange: Exchange) -> None:
        """Stop ``exchange`` when the client leaves, or has left, and when the server stops."""

    async def finish(self, last: bytes) -> None:
        """Hand over the answer's last bytes."""

    async def fail(self, error: ApiError) -> None:
        """Tell the client: a status when nothing was sent yet, an in-band frame otherwise."""


@dataclass(slots=True)
class ChatService:
    """What the story needs: the catalog, the limits, the way out, the ledger."""

    catalog: Catalog
    limiter: Limiter
    egress: Egress
    ledger: Ledger
    reconciler: Reconciler
    refused: RefusedRequests
    thread: FairThread
    """Reads large bodies."""
    spent: SpentLimits = field(default_factory=SpentLimits)

    async def prepare(
        self, body: bytes, principal: Principal, request_id: str, arrived: float, captured: bool
    ) -> Call:
        """Check ``body`` against the wire format, the catalog and the model's capabilities.

        Raises the ``ApiError`` of the first check that fails; ``RateLimitExceeded`` before anything
        is read where too many requests were refused, or where a limit is known to be used up and
        the body is not small.
        """
        now = time.time()
        organization_id = principal.organization_id
        per_minute = principal.organization_limits.requests_per_minute
        if (too_many := self.refused.too_many(organization_id, per_minute)) is not None:
            figures.refusals.add("refused_requests")
            raise admission.refused_too_often(too_many)
        if self.spent and len(body) > SMALL_BODY:
            self._check_spent(body, principal, now)
        try:
            if len(body) <= LARGE_BODY:
                request, model = self._read(body, now)
            else:
                request, model = await self.thread.run(
                    organization_id, partial(self._read, body, now)
                )
        except ApiError as error:
            self.refused.count(organization_id, per_minute, error, len(body))
            raise
        self._check_poison(request, model, principal)
        return Call(
            request_id=request_id,
            arrived=arrived,
            created=int(now),
            principal=principal,
            request=request,
            model=model,
            price=model.price_at(now),
            body_bytes=len(body),
            captured=captured,
        )

    def _read(self, body: bytes, now: float) -> tuple[ChatRequest, PublishedModel]:
        """The request and its model. Runs in a thread too: it only reads what it shares."""
        fields = parse_body(body)
        model = self.catalog.resolve(model_of(fields), now)
        if len(body) > model.max_request_bytes:
            raise RequestTooLarge(
                f"The request body has {len(body)} bytes; '{model.id}' takes at most "
                f"{model.max_request_bytes}. Send a smaller one."
            )
        request = ChatRequest.from_fields(fields)
        _check_capabilities(request, model)
        return request, model

    def _check_spent(self, body: bytes, principal: Principal, now: float) -> None:
        """Raise ``RateLimitExceeded`` when a limit is known not to have room for ``body``."""
        try:
            model = self.catalog.resolve(glimpse_model(body), now)
        except ApiError:
            return  # reading it says what is wrong
        estimate = admission.estimate_prompt(len(body))
        refused = self.spent.refusal(admission.least_charges(principal, model, estimate))
        if refused is not None:
            refusal = admission.rate_limit_exceeded(model.id, refused)
            _count_refusal(refusal, principal, model)
            raise refusal

    def _check_poison(
        self, request: ChatRequest, model: PublishedModel, principal: Principal
    ) -> None:
        poison = self.egress.poison
        if poison.has_suspects:
            caller = principal.api_key_id or str(NIL_UUID)
            if poison.is_poison(fingerprint(poison, caller, request, model)):
                raise RequestBreaksServers

    async def complete(self, call: Call, sink: Sink) -> None:
        """Admit, ask a backend, relay, write the row; the answer's last bytes leave after it.

        Raises ``RateLimitExceeded`` or ``ServerOverloaded`` when the request is not admitted (no
        row is written then), or the failure of the exchange when nothing was sent yet.
        """
        reservation = await self._reserve(call)
        meter = Meter(_identity(call), call.arrived, _largest_count(call))
        try:
            sink.admit()
            exchange = await self._admit(call, meter)
        except BaseException:
            reservation.cancel()
            raise
        failure = await self._run(call, exchange, sink)
        if failure is not None:
            # At once: until then the model server may work on.
            exchange.close(complete=False)
        if sink.gone and not (failure is None and meter.finish_delivered):
            failure = ClientDisconnected()
        reservation.settle(meter.reported_input + meter.generated_tokens)
        await self._settle(call, meter, exchange, failure, sink)

    async def _run(self, call: Call, exchange: Exchange, sink: Sink) -> ApiError | None:
        """Run the exchange; whatever happens, there is a row to write."""
        try:
            sink.follow(exchange)
            return await exchange.run(sink, call.created)
        except Exception as error:
            log_unexpected(log, call.request_id, error)
            return InternalError()

    async def _reserve(self, call: Call) -> admission.Reservation:
        charges = admission.charges_for(
            call.principal,
            call.model,
            admission.estimate_prompt(call.body_bytes),
            call.request.output_cap,
        )
        try:
            return await admission.reserve(self.limiter, call.model.id, charges, self.spent)
        except RateLimitExceeded as refusal:
            _count_refusal(refusal, call.principal, call.model)
            if "x-should-retry" in refusal.headers:
                # It never fits: to be asked again and again it costs as much as one that is wrong.
                limits = call.principal.organization_limits
                self.refused.charge(
                    call.principal.organization_id, limits.requests_per_minute, call.body_bytes
                )
            raise

    async def _admit(self, call: Call, meter: Meter) -> Exchange:
        lease = await self.egress.pool.lease(call.model.deployments, call.principal.organization_id)
        try:
            await self.ledger.admit_durably(meter.admitted())
        except BaseException:
            lease.release()
            raise
        kept_bytes = settings.SVC_CAPTURE_BYTES if call.captured else 0
        return Exchange(call.request, call.model, lease, meter, self.egress, kept_bytes=kept_bytes)

    async def _settle(
        self,
        call: Call,
        meter: Meter,
        exchange: Exchange,
        failure: ApiError | None,
        sink: Sink,
    ) -> None:
        """Write the row, then let the end of the answer go."""
        if not meter.reported and meter.pieces:
            failure = await self._count(call, meter) or failure
        receipt = meter.receipt(failure, _http_status(failure, sink))
        if not meter.reported and receipt.generated_output_tokens:
            self._note_unreported(exchange, receipt)
        figures.observe(receipt)
        try:
            await self.ledger.record(receipt, begun=sink.status is not None)
        except InternalError as error:
            failure = failure or error
        exchange.close(complete=failure is None)
        if call.captured:
            await captures.keep(
                call.request_id,
                call.principal.organization_id,
                exchange.sent_body,
                b"".join(exchange.received),
                exchange.received_bytes,
            )
        if failure is None:
            self.reconciler.offer(meter, call.model.tokenizer, call.request)
        if failure is not None:
            await sink.fail(failure)
        elif exchange.relay is not None:
            await sink.finish(exchange.relay.tail())
        elif exchange.completion is not None:
            exchange.completion.usage = meter.client_usage()
            await sink.finish(encode(exchange.completion))

    async def _count(self, call: Call, meter: Meter) -> ApiError | None:
        """Give ``meter`` the gateway's own figures, or leave it with the pieces that came.

        Returns why the request has ended meanwhile, if it has.
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

    def _note_unreported(self, exchange: Exchange, receipt: Receipt) -> None:
        """Count tokens that a backend made and never reported, so that nobody pays for them."""
        backend, tokens = exchange.backend, receipt.generated_output_tokens
        figures.unreported_tokens.add(backend.name, receipt.model_identifier, by=tokens)
        self.egress.pool.note_unreported(backend, tokens)


def _count_refusal(refusal: RateLimitExceeded, principal: Principal, model: PublishedModel) -> None:
    figures.refusals.add(refusal.limit_scope)
    throttles.counters.count(
        principal.organization_id,
        principal.api_key_id or str(NIL_UUID),
        model.id,
        refusal.limit_scope,
    )


def _check_capabilities(request: ChatRequest, model: PublishedModel) -> None:
    if request.is_tool_request and not model.tool_calling:
        raise ModelDoesNotSupportTools(
            f"'{model.id}' does not support tool calling. Leave 'tools' out, or use a model whose "
            "capabilities.tool_calling is true in GET /v1/models."
        )
    if (named := request.json_schema) is not None:
        if not model.structured_output:
            raise ModelDoesNotSupportStructuredOutput(
                f"'{model.id}' does not support a response_format of type 'json_schema'. Leave it "
                "out, or use a model whose capabilities.structured_output is true in "
                "GET /v1/models."
            )
        schema_subset.check(named.schema, named.name, named.strict)


def _identity(call: Call) -> Identity:
    return Identity(
        request_id=call.request_id,
        organization_id=call.principal.organization_id,
        api_key_id=call.principal.api_key_id or str(NIL_UUID),
        model_identifier=call.model.id,
        model_id=call.model.model_id,
        model_version_id=call.model.model_version_id,
        streamed=bool(call.request.stream),
        shape=call.request.shape,
        input_price=call.price.input,
        output_price=call.price.output,
        currency=call.price.currency,
    )


def _largest_count(call: Call) -> int:
    """A figure of tokens above which a backend's report cannot be.

    No token is less than a byte of the prompt, so a prompt of many bytes may have many. An operator
    may publish a smaller context than the backend has, so honest figures may be beyond it.
    """
    return max(_CONTEXTS * call.model.context_length, call.body_bytes)


def _http_status(failure: ApiError | None, sink: Sink) -> int:
    """What the row says the client was sent: 499 for one that left, 200 for a begun stream."""
    if isinstance(failure, ClientDisconnected):
        return failure.status
    return sink.status or (200 if failure is None else failure.status)
