"""One backend as one worker has it: its slots, its health, and what runs there."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec
from django.conf import settings

from core.backends.ejection import BackendHealth
from core.sharing.fair_queue import FairQueue
from inference.backends.placement import Server
from inference.catalog.snapshot import BackendRef

log = logging.getLogger(__name__)

_WARN_SECONDS: Final = 3600.0


class BackendView(msgspec.Struct, frozen=True):
    """A backend as one worker sees it now."""

    id: str
    name: str
    ejected: bool
    """No model that it serves sends it requests."""
    seconds_left: float
    """Until the ejection ends; 0 when the next request may probe it."""
    failures: int
    """Consecutive failures."""
    total_failures: int
    ejections: int
    inflight: int
    waiting: int
    last_answer: float = 0.0
    last_failure: float = 0.0
    """Unix seconds, as in ``BackendHealth``."""
    unreported_tokens: int = 0
    """Output tokens that it generated for this worker and never reported."""
    improbable_reports: int = 0
    """Answers to this worker whose reported tokens exceed the model's context or the output cap."""
    running: dict[str, int] = {}
    """Requests that are being answered, by the model's name on the backend."""
    draining: list[str] = []
    """Names on the backend of the models whose deployment there gets nothing new."""
    slots: int = 0
    """Of all workers together."""
    held: int = 0
    """The part of them that this worker may hand out now."""
    waiting_by_class: tuple[int, ...] = ()
    """Those that wait, by the numbers of ``Priority``."""
    prompt_tokens: int = 0
    """Tokens of prompts whose cached tokens it reported to this worker."""
    cached_tokens: int = 0
    """Those of them that it had cached."""
    moves: int = 0
    """Conversations that this worker sent to it before, and then to another server."""
    unanswered_tokens: int = 0
    """Tokens that it has to compute before the first ones of the answers that it owes this worker."""
    lost_tokens: int = 0
    """Tokens that it was sent before and had to compute again lately (``Server.lost_lately``)."""


@dataclass(slots=True)
class PooledBackend:
    """A backend with its slots and its health."""

    backend: BackendRef
    slots: FairQueue
    server: Server
    health: BackendHealth = field(default_factory=BackendHealth)
    running: Counter[str] = field(default_factory=Counter)
    """Slots that are held, by the model's name on the backend."""
    unreported_tokens: int = 0
    improbable_reports: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    warned_at: dict[str, float] = field(default_factory=dict)
    """When each warning about its usage was logged last."""

    def warn_hourly(self, kind: str, text: str) -> None:
        """Log a warning that begins with the backend's name, each ``kind`` once an hour."""
        now = time.monotonic()
        if now - self.warned_at.get(kind, -_WARN_SECONDS) >= _WARN_SECONDS:
            self.warned_at[kind] = now
            log.warning("backend %s %s", self.backend.name, text)

    def view(self, now: float, seconds_left: float, *, is_kept: bool) -> BackendView:
        """The state at ``now``; ``is_kept``: it gets requests although it is ejected for ``seconds_left``."""
        health, slots = self.health, self.slots
        return BackendView(
            id=self.backend.id,
            name=self.backend.name,
            ejected=health.ejected and not is_kept,
            seconds_left=round(seconds_left, 1),
            failures=health.failures,
            last_answer=health.last_answer,
            last_failure=health.last_failure,
            total_failures=health.total_failures,
            ejections=health.ejections,
            inflight=slots.inflight,
            waiting=slots.waiting,
            slots=self.backend.max_concurrency,
            held=slots.limit,
            waiting_by_class=slots.waiting_by_class,
            running={name: count for name, count in list(self.running.items()) if count},
            unreported_tokens=self.unreported_tokens,
            improbable_reports=self.improbable_reports,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            moves=self.server.moves,
            unanswered_tokens=round(self.server.unanswered_tokens),
            lost_tokens=round(self.server.lost_lately(now)),
        )


def pooled_backend(backend: BackendRef) -> PooledBackend:
    """A backend that is not used yet, with all its slots."""
    slots = FairQueue(
        backend.max_concurrency,
        settings.SVC_BACKEND_QUEUE_LENGTH,
        settings.SVC_BACKEND_QUEUE_SECONDS,
        settings.SVC_BACKEND_RESERVED_SHARE,
    )
    return PooledBackend(backend, slots, Server(backend.id))
