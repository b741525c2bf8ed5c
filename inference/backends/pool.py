"""Chooses the backend of each request, by the slots and the health of every backend in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from django.conf import settings

from inference.catalog.snapshot import BackendRef, DeploymentRef
from svc_project.lib.backends.ejection import (
    BackendHealth,
    Ejector,
    Eligibility,
    OutcomeReport,
    Rules,
)
from svc_project.lib.errors import BackendUnavailable
from svc_project.lib.sharing.fair_queue import FairQueue


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


@dataclass(slots=True)
class Place:
    """A backend with its slots and its health."""

    backend: BackendRef
    slots: FairQueue
    health: BackendHealth = field(default_factory=BackendHealth)
    unreported_tokens: int = 0


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
        self._places: dict[str, Place] = {}
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
            place = self._place_of(deployment.backend)
            if place.slots.try_acquire(organization_id):
                return self._lease(deployment, place, organization_id, eligibility)
        # No request waits for a slot on a backend that is only due for a probe.
        deployment, eligibility = next(
            (each for each in ranked if each[1] is not Eligibility.PROBE_DUE), ranked[0]
        )
        place = self._place_of(deployment.backend)
        await place.slots.acquire(organization_id)
        return self._lease(deployment, place, organization_id, eligibility)

    def views(
        self,
        backends: Iterable[BackendRef],
        models: Iterable[tuple[DeploymentRef, ...]],
    ) -> list[BackendView]:
        """Return the state of ``backends`` in this process; ``models`` has each model's deployments."""
        places = [self._places.get(each.id) or _place(each) for each in backends]
        kept = set() if self.ejector.none_ejected else self._kept(models)
        return [self._view(place, place.backend.id in kept) for place in places]

    def health_of(self, backend: BackendRef) -> BackendHealth | None:
        """Return the health of ``backend``; None when it was removed or its address has changed."""
        place = self._places.get(backend.id)
        if place is None or place.backend.base_url != backend.base_url:
            return None
        return place.health

    def count_unreported(self, backend: BackendRef, tokens: int) -> None:
        """Add ``tokens`` that ``backend`` generated and never reported."""
        self._place_of(backend).unreported_tokens += tokens

    def ejected(self) -> list[Place]:
        """Return the backends that are ejected now."""
        if self.ejector.none_ejected:
            return []
        return [place for place in list(self._places.values()) if place.health.ejected]

    def remove_all_but(self, ids: set[str]) -> None:
        """Remove idle backends that are no longer in the catalog."""
        for id_, place in list(self._places.items()):
            if id_ not in ids and not place.slots.inflight and not place.slots.waiting:
                self.ejector.readmit(place.health)
                del self._places[id_]

    def _lease(
        self,
        deployment: DeploymentRef,
        place: Place,
        organization_id: str,
        eligibility: Eligibility,
    ) -> Lease:
        report = self.ejector.report_for(place.health, eligibility)
        return Lease(deployment, place.slots, organization_id, report)

    def _ranked(
        self, candidates: Sequence[DeploymentRef]
    ) -> list[tuple[DeploymentRef, Eligibility]]:
        """Return the candidates that may get the request, best first; the sort is stable."""
        if self.ejector.none_ejected:
            return [(each, Eligibility.ELIGIBLE) for each in candidates]
        group = [self._place_of(each.backend).health for each in candidates]
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
            places = [self._places.get(each.backend.id) for each in deployments]
            known = [
                place or _place(each.backend)
                for each, place in zip(deployments, places, strict=True)
            ]
            out = self.ejector.excluded([place.health for place in known])
            kept |= {place.backend.id for place in known if place.health not in out}
        return kept

    def _view(self, place: Place, is_kept: bool) -> BackendView:
        health, slots = place.health, place.slots
        return BackendView(
            id=place.backend.id,
            name=place.backend.name,
            ejected=health.ejected and not is_kept,
            seconds_left=round(self.ejector.seconds_left(health), 1),
            failures=health.failures,
            total_failures=health.total_failures,
            ejections=health.ejections,
            inflight=slots.inflight,
            waiting=slots.waiting,
            limit=slots.limit,
            unreported_tokens=place.unreported_tokens,
        )

    def _load(self, deployment: DeploymentRef) -> float:
        slots = self._place_of(deployment.backend).slots
        return slots.inflight / max(slots.limit, 1)

    def _place_of(self, backend: BackendRef) -> Place:
        place = self._places.get(backend.id)
        if place is None:
            place = self._places[backend.id] = _place(backend)
        elif place.backend is not backend:
            if place.backend.base_url != backend.base_url:
                # The operator changed its address: the known health is that of another server.
                self.ejector.readmit(place.health)
                place.health = BackendHealth()
            place.backend = backend
            if place.slots.limit != backend.max_concurrency:
                place.slots.limit = backend.max_concurrency
        return place


def _place(backend: BackendRef) -> Place:
    slots = FairQueue(
        backend.max_concurrency,
        settings.SVC_BACKEND_QUEUE_LENGTH,
        settings.SVC_BACKEND_QUEUE_SECONDS,
        settings.SVC_BACKEND_RESERVED_SHARE,
    )
    return Place(backend, slots)
