"""The worker processes that the engines of this process have started, as the system lists them."""

from __future__ import annotations

from pathlib import Path


def worker_pids(module: str = "speech.engines.espeak.worker") -> list[int]:
    """Process ids of this process's children that run ``module``; one that has ended is not listed."""
    children = {
        int(number)
        for tasks in Path("/proc/self/task").glob("*/children")
        for number in tasks.read_text().split()
    }
    return sorted(pid for pid in children if module.encode() in _command(pid))


def _command(pid: int) -> list[bytes]:
    """The words of the process's command line; none of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []
