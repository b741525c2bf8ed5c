"""The worker processes that a server's process has started, as the system lists them."""

from __future__ import annotations

import os

from tests.support.processes import children, command_of


def worker_pids(
    module: str = "speech.engines.espeak.worker", parent: int | None = None
) -> list[int]:
    """Process ids of the children of ``parent``, this process by default, that run ``module``.

    One that has ended is not listed.
    """
    found = children(os.getpid() if parent is None else parent)
    return sorted(pid for pid in found if module.encode() in command_of(pid))
