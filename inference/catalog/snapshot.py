"""The immutable snapshot of the catalog that requests read, built by four queries."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from math import inf
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Q

from accounts.keys.principal import RateLimits
from core import variables
from inference.models import Backend, Deployment, ModelEntry, ModelLimit, Price
from inference.models.backends import check_defaults, check_extra_fields
from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage

log = logging.getLogger(__name__)

SMALLEST_READ_BYTES = 1_048_576
"""Read at least this many bytes of a body before the model is known: an unknown model then gives
404 and not 413, however small the models' limits are."""


@dataclass(frozen=True, slots=True)
class StampedPrice:
    """A price per million tokens as it is copied onto usage rows."""

    input: Decimal
    output: Decimal
    currency: str
    effective_from: float
    """Seconds since the epoch."""
    provisional: bool = True
    """Always true during the beta (inference contract, Model entry)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a backend, in seconds."""

    first_byte: float
    idle: float
    total: float
    disconnect_drain: float
    """How long an answer is read on for its token counts after the client disconnected."""


@dataclass(frozen=True, slots=True)
class BackendRef:
    """A model server, its address and its settings."""

    id: str
    name: str
    base_url: str
    """Without a slash at its end."""
    headers: dict[str, str] = field(repr=False)
    """Sent with each request: the operator's, and the backend's key."""
    max_concurrency: int
    timeouts: Timeouts
    running_usage: RunningUsage
    output_cap_field: OutputCapField
    extra_fields: bytes
    """Members of a JSON object that are added to each body: ``"top_k":40``."""
    keep_alive: KeepAlive
    prefix_cache: PrefixCache = PrefixCache.SHARED


@dataclass(frozen=True, slots=True)
class DeploymentRef:
    """A backend that serves a model, and the model's name there."""

    backend: BackendRef
    model: str
    share: float = 0.0
    """Of new conversations, below 1; 0 where all deployments of the weights have the same weight."""
    extra_fields: bytes | None = None
    """Replaces the backend's, for a model with fields of its own, which it contains."""


@dataclass(frozen=True, slots=True)
class Served:
    """The deployments of one weights record: those that get new requests, and those that only finish."""

    serving: tuple[DeploymentRef, ...] = ()
    draining: tuple[DeploymentRef, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A published entry, perhaps retired; the numbers are those of the contract's Model entry."""

    id: str
    """The identifier that clients send."""
    model_id: str
    model_version_id: str
    context_length: int
    max_request_bytes: int
    default_max_output_tokens: int
    tool_calling: bool
    structured_output: bool
    tokenizer: str
    created: int
    """When it was published, in seconds since the epoch."""
    superseded_by: str | None
    shutdown_at: datetime | None
    shutdown_epoch: float
    """``shutdown_at`` in seconds since the epoch; infinity when there is none."""
    prices: tuple[StampedPrice, ...]
    """By ``effective_from``; announced ones included, withdrawn ones not."""
    deployments: tuple[DeploymentRef, ...]
    limits: dict[str, RateLimits]
    """An organization's own limits on this model, by organization id."""
    superseded_epoch: int = 0
    """When it was superseded, in seconds since the epoch; 0 while it is active."""
    draining: tuple[DeploymentRef, ...] = ()
    """Deployments that finish what they have, and get nothing new."""
    defaults: dict[str, Any] = field(default_factory=dict)
    """For fields of a request that the caller left out (``inference.wire.defaults``)."""
    keep_alive_seconds: float | None = None
    """After so many seconds of silence a stream is sent a comment; None: never."""

    def price_at(self, now: float) -> StampedPrice:
        """Return the price in force at ``now``, in seconds since the epoch.

        That is the first one for a host whose clock is behind: by that of the host that published the
        entry it was in force then.
        """
        for price in reversed(self.prices):
            if price.effective_from <= now:
                return price
        return self.prices[0]

    def is_retired(self, now: float) -> bool:
        """Whether the shutdown date has come; ``now`` in seconds since the epoch."""
        return self.shutdown_epoch <= now


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """All published models by identifier, retired ones included."""

    models: dict[str, PublishedModel]
    largest_request_bytes: int = SMALLEST_READ_BYTES
    """The largest number of bytes of a body that is read before its model is known."""


def read_snapshot() -> CatalogSnapshot:
    """Read the catalog from the database, in four queries whatever its size."""
    models = read_models(Q())
    largest = max((model.max_request_bytes for model in models.values()), default=0)
    return CatalogSnapshot(models, max(SMALLEST_READ_BYTES, largest))


def read_models(which: Q) -> dict[str, PublishedModel]:
    """Read the published entries that match ``which``, by identifier."""
    entries = list(
        ModelEntry.objects.filter(which, published_at__isnull=False)
        .select_related("weights", "superseded_by")
        .order_by("identifier")
    )
    prices = defaultdict(list)
    for price in Price.objects.standing().filter(entry__in=entries).order_by("effective_from"):
        prices[price.entry_id].append(_stamped(price))
    deployments = _deployments()
    limits: dict[object, dict[str, RateLimits]] = defaultdict(dict)
    for limit in ModelLimit.objects.all():
        limits[limit.entry_id][str(limit.organization_id)] = RateLimits(
            limit.requests_per_minute, limit.tokens_per_minute
        )
    return {
        entry.identifier: _published(
            entry,
            tuple(prices[entry.pk]),
            _served(entry, deployments.get(entry.weights_id, Served())),
            limits.get(entry.pk, {}),
        )
        for entry in entries
    }


def _published(
    entry: ModelEntry,
    prices: tuple[StampedPrice, ...],
    served: Served,
    limits: dict[str, RateLimits],
) -> PublishedModel:
    assert entry.published_at is not None  # noqa: S101  # the query selects it
    return PublishedModel(
        id=entry.identifier,
        model_id=str(entry.pk),
        model_version_id=str(entry.weights_id),
        context_length=entry.context_length,
        max_request_bytes=entry.max_request_bytes,
        default_max_output_tokens=entry.default_max_output_tokens,
        tool_calling=entry.tool_calling,
        structured_output=entry.structured_output,
        tokenizer=entry.weights.tokenizer,
        created=int(entry.published_at.timestamp()),
        superseded_by=entry.superseded_by.identifier if entry.superseded_by else None,
        shutdown_at=entry.shutdown_at,
        shutdown_epoch=entry.shutdown_at.timestamp() if entry.shutdown_at else float("inf"),
        prices=prices,
        deployments=served.serving,
        limits=limits,
        superseded_epoch=int(entry.superseded_at.timestamp()) if entry.superseded_at else 0,
        draining=served.draining,
        defaults=entry.defaults,
        keep_alive_seconds=entry.keep_alive_seconds,
    )


def _served(entry: ModelEntry, served: Served) -> Served:
    """The deployments of ``entry``, with its own fields; none when what it adds cannot be sent."""
    try:
        check_extra_fields(entry.extra_fields)
        check_defaults(entry.defaults)
    except ValidationError as error:
        log.error("model %s is not served: %s", entry, " ".join(error.messages))
        return Served()
    if not entry.extra_fields:
        return served
    return Served(
        tuple(_with_fields(each, entry.extra_fields) for each in served.serving),
        tuple(_with_fields(each, entry.extra_fields) for each in served.draining),
    )


def _with_fields(deployment: DeploymentRef, fields: dict[str, Any]) -> DeploymentRef:
    of_backend = msgspec.json.decode(b"{%b}" % deployment.backend.extra_fields)
    return replace(deployment, extra_fields=_members({**of_backend, **fields}))


def _members(fields: dict[str, Any]) -> bytes:
    return msgspec.json.encode(fields)[1:-1]


def _stamped(price: Price) -> StampedPrice:
    return StampedPrice(
        input=price.input_per_mtok,
        output=price.output_per_mtok,
        currency=price.currency,
        effective_from=price.effective_from.timestamp(),
    )


def _deployments() -> dict[object, Served]:
    """Read the enabled deployments on enabled backends, by weights record.

    A backend whose row cannot be read costs no other one: a newer release may have written a value that
    this one does not know, and whoever writes rows past the admin makes mistakes.
    """
    backends: dict[object, BackendRef | None] = {}
    by_weights: dict[object, list[tuple[Deployment, BackendRef]]] = defaultdict(list)
    for row in (
        Deployment.objects.filter(enabled=True, backend__enabled=True)
        .select_related("backend")
        .order_by("backend__name")
    ):
        if row.backend_id not in backends:
            try:
                backends[row.backend_id] = _backend(row.backend)
            except (ValueError, TypeError) as error:
                log.error("backend %s is not used, its row cannot be read: %s", row.backend, error)
                backends[row.backend_id] = None
        if (backend := backends[row.backend_id]) is not None:
            by_weights[row.weights_id].append((row, backend))
    return {weights: _shared_out(found) for weights, found in by_weights.items()}


def _shared_out(found: Sequence[tuple[Deployment, BackendRef]]) -> Served:
    """Part what drains from what serves, and give that its shares, unless all are equal."""
    weights = [row.weight for row, _ in found if not row.draining]
    total = sum(weights) if len(set(weights)) > 1 else inf
    return Served(
        tuple(
            DeploymentRef(backend, row.model, row.weight / total)
            for row, backend in found
            if not row.draining
        ),
        tuple(DeploymentRef(backend, row.model) for row, backend in found if row.draining),
    )


def _backend(row: Backend) -> BackendRef:
    api_key = backend_key(row)
    if found := variables.problem(row.api_key_env):
        log.warning("backend %s: %s", row.name, found)
    return BackendRef(
        id=str(row.pk),
        name=row.name,
        base_url=row.base_url.rstrip("/"),
        headers={**row.headers, **({"Authorization": f"Bearer {api_key}"} if api_key else {})},
        max_concurrency=row.max_concurrency,
        timeouts=Timeouts(
            first_byte=row.first_byte_seconds or settings.SVC_BACKEND_FIRST_BYTE_SECONDS,
            idle=row.idle_seconds or settings.SVC_BACKEND_IDLE_SECONDS,
            total=row.total_seconds or settings.SVC_BACKEND_TOTAL_SECONDS,
            disconnect_drain=(
                settings.SVC_DISCONNECT_DRAIN_SECONDS
                if row.disconnect_drain_seconds is None
                else row.disconnect_drain_seconds
            ),
        ),
        running_usage=RunningUsage(row.running_usage),
        output_cap_field=OutputCapField(row.output_cap_field),
        extra_fields=_members(row.extra_fields),
        keep_alive=KeepAlive(row.keep_alive),
        prefix_cache=PrefixCache(row.prefix_cache),
    )


def backend_key(row: Backend) -> str | None:
    """Return a backend's key from its variable, or from the file that ``NAME_FILE`` names."""
    return variables.secret_of(row.api_key_env)
