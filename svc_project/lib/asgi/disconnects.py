"""How a consumer learns that its client disconnected while the answer is made.

Sending to a disconnected client raises nothing on any ASGI server. Our own server calls back when a
connection ends, which needs no task; on any other server a task waits for the ASGI message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from svc_project.lib.errors import ApiError


class Stoppable(Protocol):
    """Makes an answer, and can be stopped early."""

    def stop(self, reason: ApiError) -> None: ...


def watch_disconnect(
    scope: Mapping[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    disconnected: Callable[[], None],
) -> Callable[[], object]:
    """Call ``disconnected`` once when the client disconnects, or at once if it has already.

    The body must have been read. Returns a function that ends the watch.
    """
    connection = scope.get("svc.connection")
    if connection is not None:
        end: Callable[[], object] = connection.watch_disconnect(disconnected)
        return end
    return asyncio.create_task(_wait(receive, disconnected)).cancel


async def _wait(
    receive: Callable[[], Awaitable[dict[str, Any]]], disconnected: Callable[[], None]
) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    disconnected()
