"""Asking backends how they are: ejected ones, and those that fail one caller's requests only."""

from __future__ import annotations

import asyncio
from typing import Final

from inference.backends import BackendClient
from inference.pool import BackendPool, Place
from inference.snapshot import BackendRef

ANSWER_SECONDS: Final = 2.0
"""For a backend to say how it is; one that works is quick, however busy it is."""


class Questions:
    """Asks backends beside the requests, and ejects those that do not answer well.

    Belongs to one event loop.
    """

    def __init__(self, pool: BackendPool, client: BackendClient) -> None:
        self._pool = pool
        self._client = client
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, backend: BackendRef) -> None:
        """Ask ``backend``, unless it is being asked; returns at once."""
        if backend.id not in self._tasks:
            task = asyncio.create_task(self._ask(backend))
            self._tasks[backend.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(backend.id, None))

    async def _ask(self, backend: BackendRef) -> None:
        condition = self._pool.condition(backend)
        if condition is None:
            return
        epoch = condition.epoch
        is_alive = await self._client.is_alive(backend, ANSWER_SECONDS)
        if not is_alive and self._pool.condition(backend) is condition:
            self._pool.health.gave_no_answer(condition, epoch)


async def check_ejected(pool: BackendPool, client: BackendClient, seconds: float) -> None:
    """Every ``seconds`` ask each ejected backend, and readmit those that answer; never returns."""
    while True:
        await asyncio.sleep(seconds)
        await asyncio.gather(
            *(_check(pool, client, place, seconds) for place in pool.ejected()),
        )


async def _check(pool: BackendPool, client: BackendClient, place: Place, seconds: float) -> None:
    condition = place.condition
    epoch = condition.epoch
    if await client.is_alive(place.backend, seconds) and condition.epoch == epoch:
        pool.health.readmit(condition)
