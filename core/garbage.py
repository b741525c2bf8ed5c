"""Settings of Python's garbage collector, which finds objects that refer to each other in cycles.

It stops the whole process while it searches, and chats, speech and their refusals leave it nothing
to find: their objects are freed by reference counts. Django's views and queries do leave cycles.
"""

from __future__ import annotations

import gc
from typing import Final

_COLLECT_EVERY: Final = 20_000
"""Container objects made and not freed before it searches."""


def wait_for_the_start() -> None:
    """Search for no garbage until ``keep_loaded_objects`` is called.

    Nearly all that a start makes are modules and classes, which stay: searching them again and again
    takes a seventh of its processor time.
    """
    gc.disable()


def keep_loaded_objects() -> None:
    """Exempt the objects that exist from searches, and search less often than Python by default.

    Call it at the end of a start: what is loaded by then stays.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, *gc.get_threshold()[1:])
