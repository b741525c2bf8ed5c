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
    """A twenty-eighth: pages, and long texts, whose orders time out when they get no processor."""
    BULK_WORK = 19
    """A sixty-eighth: work of seconds without a timeout."""


def lower_priority(niceness: Niceness) -> None:
    """Set the priority of this thread; only on Linux does a thread have its own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
