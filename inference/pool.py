"""Who takes a request: the slots and the condition of every backend, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
from django.conf import settings

from inference.snapshot import BackendRef, DeploymentRef
from svc_project.lib.capacity import Slots
from svc_project.lib.errors import BackendUnavailable
from svc_project.lib.health import Condition, Health, Rules, Standing, Trial


class Lease:
    """A slot on a backend, held for one exchange; ``release`` may be called twice.

    ``trial`` takes the verdict on the backend; a lease that is released without one has none.
    """

    __slots__ = ("_slots", "deployment", "trial")

    def __init__(self, deployment: DeploymentRef, slots: Slots, trial: Trial) -> None:
        self.deployment = deployment
        self.trial = trial
        self._slots: Slots | None = slots

    def release(self) -> None:
        self.trial.ended()
        if self._slots is not None:
            self._slots.release()
            self._slots = None


class BackendView(msgspec.Struct, frozen=True):
    """A backend as one worker sees it now."""

    id: str
    name: str
    ejected: bool
    """Left out by every model that it serves."""
    seconds_left: float
    """Of the ejection; 0 when the next request may try it."""
    failures: int
    """In a row."""
    total_failures: int
    ejections: int
    inflight: int
    waiting: int
    limit: int
    unreported_tokens: int = 0
    """Output tokens that it made for this worker and never reported."""


@dataclass(slots=True)
class Place:
    """A backend, its slots, and how it does."""

    backend: BackendRef
    slots: Slots
    condition: Condition = field(default_factory=Condition)
    unreported_tokens: int = 0


class BackendPool:
    """Belongs to one event loop; views may be made from any thread."""

    def __init__(self, health: Health | None = None) -> None:
        self.health = health or Health(
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
        """A slot on the least busy backend of ``deployments``, waiting shortly when all are full.

        Backends that keep failing are left out as ``Health`` says. ``without`` leaves out the
        deployment that has just failed. Raises ``ServerOverloaded`` when there is no slot in time,
        ``BackendUnavailable`` when there is no deployment at all.
        """
        candidates = [each for each in deployments if each is not without]
        if not candidates:
            raise BackendUnavailable
        if len(candidates) > 1:
            # Equally busy ones take turns.
            self._turn += 1
            turn = self._turn % len(candidates)
            candidates = candidates[turn:] + candidates[:turn]
            candidates.sort(key=self._load)
        ranked = self._ranked(candidates)
        for deployment, standing in ranked:
            place = self._place_of(deployment.backend)
            if place.slots.try_acquire():
                return self._lease(deployment, place, standing)
        # A probe is for whom it costs nothing: nobody waits for a slot on a doubtful backend.
        deployment, standing = next(
            (each for each in ranked if each[1] is not Standing.DUE), ranked[0]
        )
        place = self._place_of(deployment.backend)
        await place.slots.acquire(organization_id)
        return self._lease(deployment, place, standing)

    def views(
        self,
        backends: Iterable[BackendRef],
        models: Iterable[tuple[DeploymentRef, ...]],
    ) -> list[BackendView]:
        """``backends`` as this process sees them now; ``models`` are the deployments of each."""
        places = [self._places.get(each.id) or _place(each) for each in backends]
        kept = set() if self.health.all_in else self._kept(models)
        return [self._view(place, place.backend.id in kept) for place in places]

    def condition(self, backend: BackendRef) -> Condition | None:
        """What is known of ``backend``; None when it is forgotten or has moved meanwhile."""
        place = self._places.get(backend.id)
        if place is None or place.backend.base_url != backend.base_url:
            return None
        return place.condition

    def note_unreported(self, backend: BackendRef, tokens: int) -> None:
        """Add ``tokens`` that ``backend`` made and never reported to its view."""
        self._place_of(backend).unreported_tokens += tokens

    def ejected(self) -> list[Place]:
        """The backends that are left out now."""
        if self.health.all_in:
            return []
        return [place for place in list(self._places.values()) if place.condition.ejected]

    def forget_all_but(self, ids: set[str]) -> None:
        """Drop what is known of backends that are no longer in the catalog and serve nothing."""
        for id_, place in list(self._places.items()):
            if id_ not in ids and not place.slots.inflight and not place.slots.waiting:
                self.health.readmit(place.condition)
                del self._places[id_]

    def _lease(self, deployment: DeploymentRef, place: Place, standing: Standing) -> Lease:
        return Lease(deployment, place.slots, self.health.trial(place.condition, standing))

    def _ranked(self, candidates: Sequence[DeploymentRef]) -> list[tuple[DeploymentRef, Standing]]:
        """Those that may be asked, best first; in their order where they are equally good."""
        if self.health.all_in:
            return [(each, Standing.IN) for each in candidates]
        group = [self._place_of(each.backend).condition for each in candidates]
        ranked: list[tuple[DeploymentRef, Standing]] = [
            (each, standing)
            for each, standing in zip(candidates, self.health.standings(group), strict=True)
            if standing is not Standing.OUT
        ]
        ranked.sort(key=lambda pair: pair[1])
        return ranked

    def _kept(self, models: Iterable[tuple[DeploymentRef, ...]]) -> set[str]:
        """The ids of backends that some model asks, ejected or not."""
        kept = set()
        for deployments in models:
            places = [self._places.get(each.backend.id) for each in deployments]
            known = [
                place or _place(each.backend)
                for each, place in zip(deployments, places, strict=True)
            ]
            out = self.health.left_out([place.condition for place in known])
            kept |= {place.backend.id for place in known if place.condition not in out}
        return kept

    def _view(self, place: Place, is_kept: bool) -> BackendView:
        condition, slots = place.condition, place.slots
        return BackendView(
            id=place.backend.id,
            name=place.backend.name,
            ejected=condition.ejected and not is_kept,
            seconds_left=round(self.health.seconds_left(condition), 1),
            failures=condition.failures,
            total_failures=condition.total_failures,
            ejections=condition.ejections,
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
                # The operator moved it: what was known is of another server.
                self.health.readmit(place.condition)
                place.condition = Condition()
            place.backend = backend
            if place.slots.limit != backend.max_concurrency:
                place.slots.limit = backend.max_concurrency
        return place


def _place(backend: BackendRef) -> Place:
    slots = Slots(
        backend.max_concurrency,
        settings.SVC_BACKEND_QUEUE_LENGTH,
        settings.SVC_BACKEND_QUEUE_SECONDS,
    )
    return Place(backend, slots)
