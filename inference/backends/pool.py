"""Chooses the backend of each request, by the slots and the health of every backend in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from django.conf import settings

from core.backends.ejection import (
    BackendHealth,
    Ejector,
    Eligibility,
    OutcomeReport,
    Rules,
)
from core.errors import BackendUnavailable
from core.sharing.fair_queue import FairQueue
from inference.catalog.snapshot import BackendRef, DeploymentRef

log = logging.getLogger(__name__)

_WARN_SECONDS: Final = 3600.0


class Lease:
    """A slot on a backend, held for one exchange; ``release`` may be called twice.

    ``outcome`` takes the outcome for the backend's health; releasing the lease without one reports none.
    """

    __slots__ = ("_organization_id", "_slots", "deployment", "report")

    def __init__(
        self,
        deployment: DeploymentRef,
        slots: FairQueue,
        organization_id: str,
        report: OutcomeReport,
    ) -> None:
        self.deployment = deployment
        self._organization_id = organization_id
        self.report = report
        self._slots: FairQueue | None = slots

    def release(self) -> None:
        self.report.ended()
        if self._slots is not None:
            self._slots.release(self._organization_id)
            self._slots = None


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
    limit: int
    unreported_tokens: int = 0
    """Output tokens that it generated for this worker and never reported."""
    improbable_reports: int = 0
    """Answers to this worker whose reported tokens exceed the model's context or the output cap."""


@dataclass(slots=True)
class PooledBackend:
    """A backend with its slots and its health."""

    backend: BackendRef
    slots: FairQueue
    health: BackendHealth = field(default_factory=BackendHealth)
    unreported_tokens: int = 0
    improbable_reports: int = 0
    warned_at: dict[str, float] = field(default_factory=dict)
    """When each warning about its usage was logged last."""

    def warn_hourly(self, kind: str, text: str) -> None:
        """Log a warning that begins with the backend's name, each ``kind`` once an hour."""
        now = time.monotonic()
        if now - self.warned_at.get(kind, -_WARN_SECONDS) >= _WARN_SECONDS:
            self.warned_at[kind] = now
            log.warning("backend %s %s", self.backend.name, text)


class BackendPool:
    """Belongs to one event loop; views may be made from any thread."""

    def __init__(self, ejector: Ejector | None = None) -> None:
        self.ejector = ejector or Ejector(
            Rules(
                settings.SVC_BACKEND_EJECT_AFTER,
                settings.SVC_BACKEND_EJECT_SECONDS,
                probes=not settings.SVC_BACKEND_CHECK_SECONDS,
            )
        )
        self._backends: dict[str, PooledBackend] = {}
        self._turn = 0

    async def lease(
        self,
        deployments: tuple[DeploymentRef, ...],
        organization_id: str,
        without: DeploymentRef | None = None,
    ) -> Lease:
        """Lease a slot on the least busy backend of ``deployments``; wait briefly when all are full.

        Ejected backends are skipped (``Ejector``). ``without`` skips the deployment that has just
        failed. Raises ``ServerOverloaded`` when no slot gets free in time, ``BackendUnavailable``
        when there is no deployment at all.
        """
        candidates = [each for each in deployments if each is not without]
        if not candidates:
            raise BackendUnavailable
        if len(candidates) > 1:
            # Equally busy backends take turns.
            self._turn += 1
            turn = self._turn % len(candidates)
            candidates = candidates[turn:] + candidates[:turn]
            candidates.sort(key=self._load)
        ranked = self._ranked(candidates)
        for deployment, eligibility in ranked:
            pooled = self._pooled(deployment.backend)
            if pooled.slots.try_acquire(organization_id):
                return self._lease(deployment, pooled, organization_id, eligibility)
        # No request waits for a slot on a backend that is only due for a probe.
        deployment, eligibility = next(
            (each for each in ranked if each[1] is not Eligibility.PROBE_DUE), ranked[0]
        )
        pooled = self._pooled(deployment.backend)
        await pooled.slots.acquire(organization_id)
        return self._lease(deployment, pooled, organization_id, eligibility)

    def views(
        self,
        backends: Iterable[BackendRef],
        models: Iterable[tuple[DeploymentRef, ...]],
    ) -> list[BackendView]:
        """Return the state of ``backends`` in this process; ``models`` has each model's deployments."""
        found = [self._backends.get(each.id) or _new(each) for each in backends]
        kept = set() if self.ejector.none_ejected else self._kept(models)
        return [self._view(pooled, pooled.backend.id in kept) for pooled in found]

    def health_of(self, backend: BackendRef) -> BackendHealth | None:
        """Return the health of ``backend``; None when it was removed or its address has changed."""
        pooled = self._backends.get(backend.id)
        if pooled is None or pooled.backend.base_url != backend.base_url:
            return None
        return pooled.health

    def count_unreported(self, backend: BackendRef, tokens: int) -> None:
        """Add ``tokens`` that ``backend`` generated and never reported."""
        pooled = self._pooled(backend)
        pooled.unreported_tokens += tokens
        pooled.warn_hourly(
            "unreported", "did not report all that it generated: its tokens are not billed"
        )

    def count_improbable(self, backend: BackendRef, exceeded: str) -> None:
        """Count an answer of ``backend`` whose reported tokens exceed the bound ``exceeded``."""
        pooled = self._pooled(backend)
        pooled.improbable_reports += 1
        pooled.warn_hourly(
            exceeded,
            "reported more tokens than "
            + ("the request's output cap" if exceeded == "output_cap" else "the model's context")
            + ": they are billed as reported",
        )

    def ejected(self) -> list[PooledBackend]:
        """Return the backends that are ejected now."""
        if self.ejector.none_ejected:
            return []
        return [pooled for pooled in list(self._backends.values()) if pooled.health.ejected]

    def remove_all_but(self, ids: set[str]) -> None:
        """Remove idle backends that are no longer in the catalog."""
        for id_, pooled in list(self._backends.items()):
            if id_ not in ids and not pooled.slots.inflight and not pooled.slots.waiting:
                self.ejector.readmit(pooled.health)
                del self._backends[id_]

    def _lease(
        self,
        deployment: DeploymentRef,
        pooled: PooledBackend,
        organization_id: str,
        eligibility: Eligibility,
    ) -> Lease:
        report = self.ejector.report_for(pooled.health, eligibility)
        return Lease(deployment, pooled.slots, organization_id, report)

    def _ranked(
        self, candidates: Sequence[DeploymentRef]
    ) -> list[tuple[DeploymentRef, Eligibility]]:
        """Return the candidates that may get the request, best first; the sort is stable."""
        if self.ejector.none_ejected:
            return [(each, Eligibility.ELIGIBLE) for each in candidates]
        group = [self._pooled(each.backend).health for each in candidates]
        ranked: list[tuple[DeploymentRef, Eligibility]] = [
            (each, eligibility)
            for each, eligibility in zip(candidates, self.ejector.eligibilities(group), strict=True)
            if eligibility is not Eligibility.EJECTED
        ]
        ranked.sort(key=lambda pair: pair[1])
        return ranked

    def _kept(self, models: Iterable[tuple[DeploymentRef, ...]]) -> set[str]:
        """Return the ids of backends that some model sends requests to, ejected or not."""
        kept = set()
        for deployments in models:
            found = [self._backends.get(each.backend.id) for each in deployments]
            known = [
                pooled or _new(each.backend)
                for each, pooled in zip(deployments, found, strict=True)
            ]
            out = self.ejector.excluded([pooled.health for pooled in known])
            kept |= {pooled.backend.id for pooled in known if pooled.health not in out}
        return kept

    def _view(self, pooled: PooledBackend, is_kept: bool) -> BackendView:
        health, slots = pooled.health, pooled.slots
        return BackendView(
            id=pooled.backend.id,
            name=pooled.backend.name,
            ejected=health.ejected and not is_kept,
            seconds_left=round(self.ejector.seconds_left(health), 1),
            failures=health.failures,
            total_failures=health.total_failures,
            ejections=health.ejections,
            inflight=slots.inflight,
            waiting=slots.waiting,
            limit=slots.limit,
            unreported_tokens=pooled.unreported_tokens,
            improbable_reports=pooled.improbable_reports,
        )

    def _load(self, deployment: DeploymentRef) -> float:
        slots = self._pooled(deployment.backend).slots
        return slots.inflight / max(slots.limit, 1)

    def _pooled(self, backend: BackendRef) -> PooledBackend:
        pooled = self._backends.get(backend.id)
        if pooled is None:
            pooled = self._backends[backend.id] = _new(backend)
        elif pooled.backend is not backend:
            if pooled.backend.base_url != backend.base_url:
                # The operator changed its address: the known health is that of another server.
                self.ejector.readmit(pooled.health)
                pooled.health = BackendHealth()
            pooled.backend = backend
            if pooled.slots.limit != backend.max_concurrency:
                pooled.slots.limit = backend.max_concurrency
        return pooled


def _new(backend: BackendRef) -> PooledBackend:
    slots = FairQueue(
        backend.max_concurrency,
        settings.SVC_BACKEND_QUEUE_LENGTH,
        settings.SVC_BACKEND_QUEUE_SECONDS,
        settings.SVC_BACKEND_RESERVED_SHARE,
    )
    return PooledBackend(backend, slots)
