"""Metrics of this process: its build, what it uses of the host, and how late its event loop is."""

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

_PROC: Final = Path("/proc/self")
_STARTED: Final = time.time()

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
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield total(
        "process_cpu_seconds",
        "Processor time of this process, user and system.",
        usage.ru_utime + usage.ru_stime,
    )
    yield gauge("process_start_time_seconds", "When the process started (Unix time).", _started())
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield gauge("process_max_fds", "The most open file descriptors.", most)
    try:
        resident = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
        descriptors = len(os.listdir(_PROC / "fd"))
    except (OSError, ValueError, IndexError):
        return  # not Linux
    yield gauge(
        "process_resident_memory_bytes",
        "Resident memory of this process, without its engines.",
        resident * resource.getpagesize(),
    )
    yield gauge("process_open_fds", "Open file descriptors.", descriptors)


@cache
def _started() -> float:
    """When the process started: field 22 of its stat, in ticks since the boot (proc(5))."""
    try:
        ticks = int((_PROC / "stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        booted = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
            if line.startswith("btime")
        )
    except (OSError, ValueError, IndexError, StopIteration):
        return _STARTED
    return booted + ticks / os.sysconf("SC_CLK_TCK")
