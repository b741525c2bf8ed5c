"""Processes and their children, read from ``/proc`` (proc(5))."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> set[int]:
    """The processes that ``pid`` has started and not yet waited for."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended since
            found |= {int(number) for number in task.read_text().split()}
    return found


def runs(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processor_seconds(pid: int) -> float:
    """The processor time that the process has used, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_of(pid: int) -> float:
    """When the process began, in seconds since the epoch.

    The times of files below ``/proc`` are of the moment at which the kernel made them up.
    """
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def command_of(pid: int) -> list[bytes]:
    """The words of the process's command line; none of a process that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def workers_of(pid: int) -> set[int]:
    """The workers of a ``serve`` with several."""
    return {child for child in children(pid) if b"--sockets" in command_of(child)}


def page_process_of(pid: int) -> int | None:
    """The page process of a ``serve`` with several workers; None while it is replaced."""
    return next((child for child in children(pid) if b"--pages" in command_of(child)), None)
