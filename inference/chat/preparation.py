"""The checks of a chat request that reserve nothing, in the order of docs/api/inference.md."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from accounts.keys.principal import Principal
from core.backends.quarantine import Quarantine
from core.errors import (
    ApiError,
    ModelDoesNotSupportStructuredOutput,
    ModelDoesNotSupportTools,
    RequestTooLarge,
)
from core.limits.refused_requests import RefusedRequests
from core.sharing.fair_queue import LARGE_BODY, FairPool
from core.sharing.priority import Priority
from inference import schema_subset
from inference.backends.outcomes import RequestBreaksServers, fingerprint
from inference.catalog.catalog import Catalog
from inference.catalog.snapshot import PublishedModel, StampedPrice
from inference.chat import admission, metrics
from inference.chat.admission import SpentLimits
from inference.chat.meter import Identity
from inference.wire import ChatRequest, glimpse_model, model_of, parse_body
from inference.wire.defaults import with_defaults

SMALL_BODY: Final = 16 * 1024
"""A body of at most so many bytes is parsed before limits are checked: less than a millisecond."""

_CONTEXTS: Final = 16
"""A reported token count may be at most this many times the published context length."""


class ChatCall(msgspec.Struct, frozen=True):
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

    def identity(self) -> Identity:
        """Return the columns of its row that are known at admission."""
        return Identity(
            request_id=self.request_id,
            organization_id=self.principal.organization_id,
            api_key_id=self.principal.api_key_id,
            model_identifier=self.model.id,
            model_id=self.model.model_id,
            model_version_id=self.model.model_version_id,
            streamed=bool(self.request.stream),
            shape=self.request.shape,
            input_price=self.price.input,
            output_price=self.price.output,
            currency=self.price.currency,
        )

    @property
    def priority(self) -> Priority:
        """The caller's class, or ``BATCH`` where the request asks for the tier ``flex`` itself."""
        return Priority.BATCH if self.request.is_flex else self.principal.priority

    @property
    def largest_count(self) -> int:
        """The largest token count that is accepted in a backend's usage report.

        A token is at least one byte of the prompt, so a long body may have many tokens. An operator
        may publish a smaller context than the backend has, so honest counts may exceed it.
        """
        return max(_CONTEXTS * self.model.context_length, self.body_bytes)

    def exceeded_by(self, input_tokens: int, output_tokens: int) -> str | None:
        """Return which bound reported counts exceed, ``output_cap`` or ``context``, or None."""
        cap = self.request.output_cap
        if cap is not None and output_tokens > cap:
            return "output_cap"
        return "context" if input_tokens + output_tokens > self.model.context_length else None


@dataclass(slots=True)
class Preparation:
    """Turns the body of a request into a ``ChatCall``, or refuses it."""

    catalog: Catalog
    quarantine: Quarantine
    refused: RefusedRequests
    thread: FairPool
    """Parses large bodies."""
    spent: SpentLimits = field(default_factory=SpentLimits)

    async def prepare(
        self, body: bytes, principal: Principal, request_id: str, arrived: float, captured: bool
    ) -> ChatCall:
        """Check ``body`` against the wire format, the catalog and the model's capabilities.

        Raises the ``ApiError`` of the first check that fails. Raises ``RateLimitExceeded`` before
        parsing when too many requests were refused, or when a limit is known to be used up and the
        body is larger than ``SMALL_BODY``.
        """
        now = time.time()
        organization_id, key_id = principal.organization_id, principal.api_key_id
        per_minute = principal.organization_limits.requests_per_minute
        if (too_many := self.refused.too_many(organization_id, key_id, per_minute)) is not None:
            metrics.refusals.add("refused_requests")
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
            self.refused.count(organization_id, key_id, per_minute, error, len(body))
            raise
        self._check_quarantine(request, model, principal)
        return ChatCall(
            request_id=request_id,
            arrived=arrived,
            created=int(now),
            principal=principal,
            request=request,
            model=model,
            price=model.price_at(self.catalog.pricing_time(now)),
            body_bytes=len(body),
            captured=captured,
        )

    def _read(self, body: bytes, now: float) -> tuple[ChatRequest, PublishedModel]:
        """Parse and check the request. May run in a thread: it changes nothing that is shared."""
        fields = parse_body(body)
        model = self.catalog.resolve(model_of(fields), now)
        try:
            return _checked(fields, model, len(body)), model
        except ApiError as error:
            error.model = model.id
            raise

    def _check_spent(self, body: bytes, principal: Principal, now: float) -> None:
        """Raise ``RateLimitExceeded`` when a limit is known not to have room for ``body``."""
        try:
            model = self.catalog.resolve(glimpse_model(body), now)
        except ApiError:
            return  # parsing the body raises the right error
        estimate = admission.estimate_prompt(len(body))
        refused = self.spent.refusal(admission.least_charges(principal, model, estimate))
        if refused is not None:
            refusal = admission.rate_limit_exceeded(model.id, refused)
            admission.count_refusal(refusal, principal, model)
            refusal.model = model.id
            raise refusal

    def _check_quarantine(
        self, request: ChatRequest, model: PublishedModel, principal: Principal
    ) -> None:
        quarantine = self.quarantine
        if quarantine.has_suspects:
            caller = principal.api_key_id
            if quarantine.is_quarantined(fingerprint(quarantine, caller, request, model)):
                raise RequestBreaksServers


def _checked(fields: dict[str, Any], model: PublishedModel, body_bytes: int) -> ChatRequest:
    """The request of ``fields``, for ``model``. Raises the ``ApiError`` of the first check that fails."""
    if body_bytes > model.max_request_bytes:
        raise RequestTooLarge(
            f"The request body has {body_bytes} bytes; '{model.id}' takes at most "
            f"{model.max_request_bytes}. Send a smaller one."
        )
    if model.defaults:
        fields = with_defaults(fields, model.defaults)
    request = ChatRequest.from_fields(fields)
    _check_capabilities(request, model)
    return request


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
        schema_subset.check(named.schema, named.name, strict=named.strict)
