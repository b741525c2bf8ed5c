"""The worker processes that the engines of this process have started, as the system lists them."""

from __future__ import annotations

import os

from tests.support.processes import children, command_of


def worker_pids(module: str = "speech.engines.espeak.worker") -> list[int]:
    """Process ids of this process's children that run ``module``; one that has ended is not listed."""
    return sorted(pid for pid in children(os.getpid()) if module.encode() in command_of(pid))
