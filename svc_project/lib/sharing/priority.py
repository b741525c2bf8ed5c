"""The priority of threads that work for one caller each, below that of the event loops."""

from __future__ import annotations

import os
import sys
import threading
from enum import IntEnum


class Niceness(IntEnum):
    """How far a thread stands behind the event loops, which answer everybody (sched(7))."""

    SHORT_WORK = 5
    """A third of an event loop's share where both want the processor."""
    LONG_WORK = 15
    """A twenty-eighth: pages, long texts and the encoding of long clips."""


def lower_priority(niceness: Niceness) -> None:
    """Set the priority of this thread; only on Linux does a thread have its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
