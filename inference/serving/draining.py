"""What still runs on a deployment that drains, in every worker of this host, of both generations."""

from __future__ import annotations

from dataclasses import dataclass

from core.monitoring.worker_stats import worker_stats
from inference.backends.pooled import BackendView
from inference.models import Deployment
from inference.serving.monitoring import STATS_NAME


@dataclass(frozen=True, slots=True)
class Left:
    """``unaware`` counts workers that have not read yet that it drains: they may still send requests.

    ``waiting`` counts the whole queue of the backend, because a request there may get any slot.
    """

    workers: int
    unaware: int
    running: int
    waiting: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing runs, and nothing can follow."""
        return bool(self.workers) and not (self.unaware or self.running or self.waiting)


def left_on(deployment: Deployment) -> Left:
    """Return what the workers of this host say of ``deployment``; each does so once a second."""
    backend, model = str(deployment.backend_id), deployment.model
    workers = unaware = running = waiting = 0
    for _, views in worker_stats.read(STATS_NAME, list[BackendView]):
        workers += 1
        view = next((each for each in views if each.id == backend), None)
        if view is None or model not in view.draining:
            unaware += 1
        if view is not None:
            running += view.running.get(model, 0)
            waiting += view.waiting
    return Left(workers, unaware, running, waiting)
