"""The processor time of a worker and of its threads: its share of the processors (docs/decisions/0017),
and the priority of threads that work for one caller each, below that of the event loops.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from enum import IntEnum

log = logging.getLogger(__name__)

_before: set[int] = set()


def share(processors: Sequence[int], number: int, count: int) -> Sequence[int]:
    """The share ``number`` (from 0) of ``count``.

    Shares have no processor in common and differ in size by one at most. Where there are fewer
    processors than shares, each share is all of them.
    """
    if len(processors) < count:
        return processors
    return processors[number * len(processors) // count : (number + 1) * len(processors) // count]


def keep_to_share(number: int, count: int) -> None:
    """Keep this thread, and what it starts from now on, to share ``number`` of ``count``.

    Does nothing on systems other than Linux (sched_setaffinity(2)), and where that is forbidden.
    """
    if sys.platform != "linux":
        return
    processors = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, share(processors, number, count))
    except OSError as error:
        log.warning("this worker cannot keep to its share of the processors: %s", error)
        return
    _before.update(processors)


def unshared() -> set[int]:
    """The processors of this process before it kept to its share; empty if it keeps to none.

    A child process inherits the share, and leaves it with these.
    """
    return _before.copy()


class Niceness(IntEnum):
    """How far a thread stands behind the event loops, which answer everybody (sched(7))."""

    SHORT_WORK = 5
    """A third of an event loop's share where both want the processor."""
    LONG_WORK = 15
    """A twenty-eighth: pages, and long texts, whose orders time out when they get no processor."""
    BULK_WORK = 19
    """A sixty-eighth: work of seconds without a timeout."""


def lower_priority(niceness: Niceness) -> None:
    """Let this thread stand back that far; only on Linux does a thread have a priority of its own.

    One that stands back further already, as where the gateway was started with ``nice``, stays there:
    raising a priority takes a right that a gateway has not (setpriority(2)).
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        if os.getpriority(os.PRIO_PROCESS, thread) < niceness:
            os.setpriority(os.PRIO_PROCESS, thread, niceness)
