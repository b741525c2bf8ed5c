"""The threads that look up the console's sessions for consumers, shared between callers.

A session is known when it was valid a moment ago, or when its browser has logged in before. Known
callers have most of the threads and strangers the rest, each caller a share of them, as with the
threads that run pages: anyone can invent sessions, and theirs must not keep members waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from accounts.keys.callers import Caller, caller_by_session, cookies_of
from accounts.login.throttle import account_of_device
from core.database.threads import DatabaseThreads
from core.sharing.fair_queue import FairQueue

_MOST_WAITING: Final = 64
"""Lookups that wait for the threads of one kind of callers; half of them for one caller."""
_WAIT_SECONDS: Final = 5.0

Found = TypeVar("Found")


class SessionLookups:
    """The threads of one kind of callers."""

    def __init__(self, name: str, threads: int) -> None:
        self._places = FairQueue(
            threads, _MOST_WAITING, _WAIT_SECONDS, most_each=max(1, threads // 2)
        )
        self._threads = DatabaseThreads(name, threads)

    async def run(self, caller: str, look_up: Callable[[], Found]) -> Found:
        """Run ``look_up`` when it is the turn of ``caller``; return or raise its outcome.

        Raises ``ServerOverloaded``, and ``InternalError`` when the database does not answer.
        """
        await self._places.acquire(caller)
        try:
            return await self._threads.run(look_up)
        finally:
            self._places.release(caller)

    def close(self) -> None:
        """End the threads; the next lookup starts them again."""
        self._threads.close()


known: Final = SessionLookups("console-sessions", 2)
"""The lookups of callers with a session or a browser that was valid before."""
strangers: Final = SessionLookups("console-strangers", 1)
"""The lookups of all other callers."""


async def run(scope: Mapping[str, Any], look_up: Callable[[], Found]) -> Found:
    """Run ``look_up`` for the caller of an ASGI request, as ``SessionLookups.run`` does."""
    caller = _caller_of(scope)
    return await (known if caller.is_known else strangers).run(caller.name, look_up)


def close() -> None:
    """End the threads of this process."""
    known.close()
    strangers.close()


def _caller_of(scope: Mapping[str, Any]) -> Caller:
    caller = caller_by_session(scope)
    if caller.is_known:
        return caller
    # Another worker may have seen the session, or this one before it started anew.
    account = account_of_device(cookies_of(scope))
    return caller if account is None else Caller(f"account:{account}", is_known=True)
