"""Metrics of this process: its build, what it and its parent use of the host, how late its event loop is."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings

from core.monitoring.metrics import Family, Histogram, Sample, gauge, total

LOOK_SECONDS: Final = 0.25
"""How often the event loop is looked at."""

_STARTED: Final = time.time()
_PARENT: Final = os.getppid()
"""Of a process of ``serve`` the one that started it, and replaces it."""

loop_lag = Histogram(
    "svc_event_loop_lag_seconds",
    "How much later than asked the event loop ran a timer; looked at four times a second.",
    (),
)


async def watch_loop() -> None:
    """Measure the event loop's lag; never returns."""
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        loop_lag.observe(max(0.0, clock() - due))


def families() -> Iterator[Family]:
    """Yield the metrics, under the names that Prometheus' clients give them."""
    labels = {"version": settings.VERSION, "python": platform.python_version()}
    yield Family("svc_build_info", "gauge", "1; the labels say what runs.", [Sample("", labels, 1)])
    yield loop_lag.family()
    yield total(
        "svc_worker_restarts",
        "Times that the parent has replaced this process, since the start or the last reload.",
        settings.SVC_WORKER_RESTARTS,
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield from _uses_of(os.getpid(), usage.ru_utime + usage.ru_stime, _started(), most)


def parent_families() -> list[Family]:
    """What ``serve``'s parent uses; nothing in other programs, after its end, and not on Linux.

    It serves nothing, so a process that it has started reads this for it.
    """
    if not settings.SVC_GENERATION or os.getppid() != _PARENT:
        return []
    try:
        user, system = (int(each) for each in _stat(_PARENT)[11:13])
        seconds = (user + system) / os.sysconf("SC_CLK_TCK")
        most, _ = resource.prlimit(_PARENT, resource.RLIMIT_NOFILE)
        return list(_uses_of(_PARENT, seconds, _started_of(_PARENT), most))
    except (OSError, ValueError, IndexError, StopIteration, AttributeError):
        return []  # it has ended just now, or this is not Linux


def _uses_of(pid: int, seconds: float, started: float, most: int) -> Iterator[Family]:
    """The families of the process ``pid``; memory and descriptors on Linux alone."""
    yield total("process_cpu_seconds", "Processor time of this process, user and system.", seconds)
    yield gauge("process_start_time_seconds", "When the process started (Unix time).", started)
    yield gauge("process_max_fds", "The most open file descriptors.", most)
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, ValueError, IndexError):
        return  # not Linux
    yield gauge(
        "process_resident_memory_bytes",
        "Resident memory of this process, without its engines.",
        resident * resource.getpagesize(),
    )
    yield gauge("process_open_fds", "Open file descriptors.", descriptors)


def _started() -> float:
    try:
        return _started_of(os.getpid())
    except (OSError, ValueError, IndexError, StopIteration):
        return _STARTED


@cache
def _started_of(pid: int) -> float:
    """When the process started: field 22 of its stat, in ticks since the boot (proc(5))."""
    booted = next(
        int(line.split()[1])
        for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
        if line.startswith("btime")
    )
    return booted + int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[bytes]:
    """The fields of the process's stat from the third on, behind its name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
