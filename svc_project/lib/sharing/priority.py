"""The priority of threads whose work nobody but their own caller waits for."""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

_NICENESS: Final = 10


def lower_priority() -> None:
    """Put this thread behind the event loops, which answer everybody.

    Only on Linux does a thread have a priority of its own (sched(7)).
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
