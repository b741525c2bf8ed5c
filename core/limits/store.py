"""A connection to Redis, which runs one script for all callers, and its timeout."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

from redis.asyncio.connection import AbstractConnection, ConnectionPool

Command = Sequence[str | bytes | int]

_LATE_SECONDS: Final = 0.01
"""A timer that runs so late says that the event loop did not run."""
_LONGEST_SECONDS: Final = 1.0
"""The longest wait of a call on a busy host, unless the timeout itself is longer."""


class StoreTime:
    """An asynchronous context that raises ``TimeoutError`` when the store has had ``seconds`` to answer.

    Time in which the event loop did not run is not the store's: its answer may have arrived
    meanwhile, and is only read in the turn that ends the timeout. So a timeout that expires late begins
    again, as often as that happens and up to ``_LONGEST_SECONDS`` in all.
    """

    __slots__ = ("_due", "_latest", "_limit", "_loop", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        now = self._loop.time()
        self._due = now + self._seconds
        self._latest = now + max(self._seconds, _LONGEST_SECONDS)
        self._timer = self._loop.call_at(self._due, self._expire)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _expire(self) -> None:
        now = self._loop.time()
        if now - self._due > _LATE_SECONDS and now < self._latest:
            self._due = now + self._seconds
            self._timer = self._loop.call_at(self._due, self._expire)
        else:
            self._limit.reschedule(now)


class ScriptStore:
    """One connection to Redis, with ``script`` loaded; one exchange at a time, on one event loop.

    It connects when it is first used, and again after any failure: replies may still be under way then,
    so the connection is never read again.
    """

    def __init__(self, url: str, script: str, seconds: float) -> None:
        # The library's own timeouts would count the time in which this process did not run.
        self._pool = ConnectionPool.from_url(url, socket_timeout=None, socket_connect_timeout=None)
        self._script = script
        self._seconds = seconds
        self._connection: AbstractConnection | None = None
        self.digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
        """The name of the script for ``EVALSHA``."""

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send ``commands`` together and return their replies.

        Raises what the client library raises, and ``TimeoutError`` (``StoreTime``).
        """
        async with StoreTime(self._seconds):
            try:
                connection = self._connection or await self._connect()
                packed: list[Sequence[Any]] = list(commands)
                await connection.send_packed_command(
                    connection.pack_commands(packed), check_health=False
                )
                return [await connection.read_response() for _ in commands]
            except BaseException:
                await self.drop()
                raise

    async def drop(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.disconnect(nowait=True)

    async def _connect(self) -> AbstractConnection:
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # typed in part
        self._connection = connection
        await connection.connect()  # type: ignore[no-untyped-call]  # likewise
        await connection.send_command("SCRIPT", "LOAD", self._script)
        await connection.read_response()
        return connection
