"""Chooses the backend of each request, by the slots and the health of every backend in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from django.conf import settings

from core.backends.ejection import (
    BackendHealth,
    Ejector,
    Eligibility,
    OutcomeReport,
    Rules,
)
from core.errors import BackendUnavailable
from core.sharing.fair_queue import FairQueue, acquire_first
from core.sharing.slots import SharedSlots
from inference.backends import metrics, shares
from inference.backends.placement import Candidate, Placed, Placement, Reason
from inference.backends.pooled import BackendView, PooledBackend, pooled_backend
from inference.backends.prompts import Prompt
from inference.backends.shared_marks import Marks, Told
from inference.catalog.snapshot import BackendRef, DeploymentRef

log = logging.getLogger(__name__)


class Lease:
    """A slot on a backend, held for one exchange; ``release`` may be called twice.

    ``outcome`` takes the outcome for the backend's health; releasing the lease without one reports none.
    """

    __slots__ = ("_placed", "_placement", "_pooled", "deployment", "prompt", "report")

    def __init__(
        self,
        deployment: DeploymentRef,
        prompt: Prompt,
        pooled: PooledBackend,
        report: OutcomeReport,
        placement: Placement,
        placed: Placed | None,
    ) -> None:
        self.deployment = deployment
        self.prompt = prompt
        self.report = report
        self._pooled: PooledBackend | None = pooled
        self._placement = placement
        self._placed = placed

    def answered(self) -> None:
        """Note that the first token came."""
        if self._placed is not None:
            self._placement.answered(self._placed)

    def learn(self, prompt_tokens: int, cached: int | None) -> None:
        """Note what the server reported: the prompt's tokens, and those of them that were cached."""
        if cached is not None and self._pooled is not None:
            self._pooled.prompt_tokens += prompt_tokens
            self._pooled.cached_tokens += cached
        if self._placed is not None:
            self._placement.learn(self._placed, prompt_tokens, cached)

    def release(self) -> None:
        self.report.ended()
        self.answered()
        if self._pooled is not None:
            self._pooled.running[self.deployment.model] -= 1
            self._pooled.slots.release(self.prompt.organization_id, self.prompt.priority)
            self._pooled = None


class BackendPool:
    """Belongs to one event loop; views may be made from any thread.

    ``slots`` divides those of each backend among all workers; without it this process has them all.
    ``homes``: whether other workers send requests to the same backends. Through ``marks`` they tell each
    other of prompts.
    """

    def __init__(
        self,
        ejector: Ejector | None = None,
        *,
        homes: bool = False,
        slots: SharedSlots | None = None,
        marks: Marks | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ejector = ejector or Ejector(
            Rules(
                settings.SVC_BACKEND_EJECT_AFTER,
                settings.SVC_BACKEND_EJECT_SECONDS,
                probes=not settings.SVC_BACKEND_CHECK_SECONDS,
            )
        )
        self._clock = clock
        self._slots_of_all = slots or SharedSlots("")
        self._marks = marks
        self.placement = Placement(homes=homes, clock=clock)
        self._backends: dict[str, PooledBackend] = {}

    async def lease(
        self,
        deployments: tuple[DeploymentRef, ...],
        prompt: Prompt,
        without: DeploymentRef | None = None,
    ) -> Lease:
        """Lease a slot on the backend of ``deployments`` where ``prompt`` costs least (``Placement``).

        A conversation waits for a slot where it is; any other request takes a free one of the next
        backends, or the first that gets free. Ejected backends are skipped (``Ejector``), and that of
        ``without``, which has just failed. Raises ``ServerOverloaded`` when no slot gets free in time,
        ``BackendUnavailable`` when there is no deployment at all.
        """
        candidates = deployments if without is None else _without(deployments, without)
        if not candidates:
            raise BackendUnavailable
        if len(candidates) == 1:
            deployment = candidates[0]
            [(_, eligibility)] = self._ranked(candidates)
            if not self._takes(deployment, prompt):
                await _wait((self._slots(deployment),), prompt)
            return self._lease(deployment, eligibility, prompt, is_choice=False)
        found = self._candidates(candidates)
        if self.ejector.none_ejected:
            # The usual case, without comparing costs.
            stays = self.placement.stays(prompt, found)
            if stays is not None and self._takes(candidates[stays], prompt):
                metrics.placements.add(Reason.WARM)
                return self._lease(candidates[stays], Eligibility.ELIGIBLE, prompt)
        order, reason = self._order(prompt, candidates, found)
        best = candidates[order[0]]
        deployment, eligibility = await self._slot(
            self._ranked([candidates[at] for at in order]),
            prompt,
            best if reason in (Reason.WARM, Reason.HOME) else None,
        )
        if deployment is not best:
            reason = Reason.MOVED if reason in (Reason.WARM, Reason.MOVED) else Reason.LOAD
        self._count(reason, prompt)
        return self._lease(deployment, eligibility, prompt)

    def _count(self, reason: Reason, prompt: Prompt) -> None:
        metrics.placements.add(reason)
        if reason is Reason.MOVED:
            self.placement.count_move(prompt)

    def _order(
        self, prompt: Prompt, candidates: Sequence[DeploymentRef], found: Sequence[Candidate]
    ) -> tuple[list[int], Reason]:
        """The indexes of ``candidates``, best first: by cost, or by their shares where they have some."""
        if not candidates[0].share:
            return self.placement.order(prompt, found)
        return shares.order(self.placement, prompt, found, [each.share for each in candidates])

    async def _slot(
        self,
        ranked: list[tuple[DeploymentRef, Eligibility]],
        prompt: Prompt,
        worth_a_wait: DeploymentRef | None,
    ) -> tuple[DeploymentRef, Eligibility]:
        """Take a slot of the first of ``ranked`` that has one, or wait for the first that gets free.

        Where ``worth_a_wait`` is the best, only that is waited for. No request waits for a slot on a
        backend that is only due for a probe.
        """
        waits = [each for each in ranked if each[1] is not Eligibility.PROBE_DUE] or ranked
        takes = ranked
        if waits[0][0] is worth_a_wait:
            takes = ranked[: ranked.index(waits[0]) + 1]
            waits = waits[:1]
        for each in takes:
            if self._takes(each[0], prompt):
                return each
        queues = {self._slots(each[0]): each for each in waits}
        return queues[await _wait(tuple(queues), prompt)]

    def views(
        self,
        backends: Iterable[BackendRef],
        models: Iterable[tuple[DeploymentRef, ...]],
    ) -> list[BackendView]:
        """Return the state of ``backends`` in this process; ``models`` has each model's deployments."""
        found = [self._backends.get(each.id) or pooled_backend(each) for each in backends]
        kept = set() if self.ejector.none_ejected else self._kept(models)
        now = self._clock()
        return [
            pooled.view(
                now, self.ejector.seconds_left(pooled.health), is_kept=pooled.backend.id in kept
            )
            for pooled in found
        ]

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

    def heard(self, told: Told) -> None:
        """Note where another worker sent a prompt."""
        if (pooled := self._backends.get(told.backend_id)) is not None:
            self.placement.remember(told.organization_id, told.marks, told.size, pooled.server)

    def hears(self, *, others: bool) -> None:
        """Note whether other workers are heard: where they are not, conversations have homes."""
        self.placement.homes = not others

    def ejected(self) -> list[PooledBackend]:
        """Return the backends that are ejected now."""
        if self.ejector.none_ejected:
            return []
        return [pooled for pooled in list(self._backends.values()) if pooled.health.ejected]

    def keep(self, backends: Iterable[BackendRef]) -> None:
        """Hold slots of ``backends``, the catalog's, and remove idle ones that are no longer in it."""
        ids = {self._pooled(each).backend.id for each in backends}
        for id_, pooled in list(self._backends.items()):
            if id_ not in ids and not pooled.slots.inflight and not pooled.slots.waiting:
                self.ejector.readmit(pooled.health)
                self._slots_of_all.forget(id_)
                del self._backends[id_]

    def _lease(
        self,
        deployment: DeploymentRef,
        eligibility: Eligibility,
        prompt: Prompt,
        *,
        is_choice: bool = True,
    ) -> Lease:
        pooled = self._pooled(deployment.backend)
        report = self.ejector.report_for(pooled.health, eligibility)
        placed = self.placement.place(prompt, pooled.server) if is_choice else None
        if is_choice and self._marks is not None and prompt.beginning:
            self._marks.tell(prompt, pooled.backend.id)
        pooled.running[deployment.model] += 1
        return Lease(deployment, prompt, pooled, report, self.placement, placed)

    def _candidates(self, deployments: Sequence[DeploymentRef]) -> list[Candidate]:
        found = []
        for each in deployments:
            pooled = self._pooled(each.backend)
            if pooled.server.ejections != pooled.health.ejections:
                # Most failures that eject a server end in its restart.
                pooled.server.ejections = pooled.health.ejections
                pooled.server.forget(self._clock())
            found.append(Candidate(pooled.server, pooled.slots.inflight + pooled.slots.waiting))
        return found

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
                pooled or pooled_backend(each.backend)
                for each, pooled in zip(deployments, found, strict=True)
            ]
            out = self.ejector.excluded([pooled.health for pooled in known])
            kept |= {pooled.backend.id for pooled in known if pooled.health not in out}
        return kept

    def _takes(self, deployment: DeploymentRef, prompt: Prompt) -> bool:
        """Take a slot for ``prompt`` without waiting; whether there was one."""
        slots = self._pooled(deployment.backend).slots
        return slots.try_acquire(prompt.organization_id, prompt.priority)

    def _slots(self, deployment: DeploymentRef) -> FairQueue:
        return self._pooled(deployment.backend).slots

    def _pooled(self, backend: BackendRef) -> PooledBackend:
        pooled = self._backends.get(backend.id)
        if pooled is None:
            pooled = self._backends[backend.id] = pooled_backend(backend)
            self._slots_of_all.divide(backend.id, pooled.slots, backend.max_concurrency)
        elif pooled.backend is not backend:
            if pooled.backend.base_url != backend.base_url:
                # The operator changed its address: the known health is that of another server.
                self.ejector.readmit(pooled.health)
                pooled.health = BackendHealth()
                pooled.server.forget(self._clock())
            pooled.backend = backend
            self._slots_of_all.divide(backend.id, pooled.slots, backend.max_concurrency)
        return pooled


async def _wait(queues: Sequence[FairQueue], prompt: Prompt) -> FairQueue:
    """``acquire_first``, with the wait in the metrics, also one that ends without a slot."""
    began = time.monotonic()
    try:
        return await acquire_first(queues, prompt.organization_id, prompt.priority)
    finally:
        metrics.waits.observe(time.monotonic() - began, prompt.priority.label)


def _without(
    deployments: tuple[DeploymentRef, ...], failed: DeploymentRef
) -> tuple[DeploymentRef, ...]:
    """Leave out the backend of ``failed``: by id, because the catalog may have been read again since."""
    return tuple(each for each in deployments if each.backend.id != failed.backend.id)
