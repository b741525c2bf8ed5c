"""Waiting for a state, in a thread (``until``) or on an event loop (``until_async``)."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

SECONDS = 60.0
"""Longer than anything takes on a busy machine; no test lasts as long while it passes."""
_PAUSE = 0.01
Found = TypeVar("Found")


def until(look: Callable[[], Found | None], seconds: float = SECONDS) -> Found:
    """Return what ``look`` returns once it is true; fail after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"not seen within {seconds} s"
        time.sleep(_PAUSE)
    return found


async def until_async(look: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """``until`` for tests on an event loop; ``look`` may also be asynchronous."""
    deadline = time.monotonic() + seconds
    while True:
        asked = look()
        found = await asked if inspect.isawaitable(asked) else asked
        if found:
            return found
        assert time.monotonic() < deadline, f"not seen within {seconds} s"
        await asyncio.sleep(_PAUSE)
