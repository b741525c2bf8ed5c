"""What another gateway, router or proxy tells the comparison about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.tables import Target


@dataclass(frozen=True, slots=True)
class Peer:
    """A program of others that can stand in front of the stub.

    ``missing`` says why it cannot run here, or None; ``start`` starts it. Goals: ``cpu`` and ``frame``
    say how many times svc's CPU time of a whole answer, and of a frame, it should take at least. ``slow``
    is false for one whose frames cost so much that a thousand streams would measure its queue.
    """

    name: str
    missing: Callable[[], str | None]
    start: Callable[[Bench], Target]
    cpu: float | None = None
    frame: float | None = None
    slow: bool = True
