"""Health checks of ejected backends, and of backends that fail for only one caller."""

from __future__ import annotations

import asyncio
from typing import Final

from inference.backends.client import BackendClient
from inference.backends.pool import BackendPool
from inference.backends.pooled import PooledBackend
from inference.catalog.snapshot import BackendRef

ANSWER_SECONDS: Final = 2.0
"""Timeout of a health check; a working backend answers quickly, however busy it is."""


class HealthChecks:
    """Checks backends in the background, and ejects those that do not answer well.

    Belongs to one event loop.
    """

    def __init__(self, pool: BackendPool, client: BackendClient) -> None:
        self._pool = pool
        self._client = client
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def check(self, backend: BackendRef) -> None:
        """Start a check of ``backend`` unless one is running; returns at once."""
        if backend.id not in self._tasks:
            task = asyncio.create_task(self._check(backend))
            self._tasks[backend.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(backend.id, None))

    async def _check(self, backend: BackendRef) -> None:
        health = self._pool.health_of(backend)
        if health is None:
            return
        epoch = health.epoch
        is_alive = await self._client.is_alive(backend, ANSWER_SECONDS)
        if not is_alive and self._pool.health_of(backend) is health:
            self._pool.ejector.failed_health_check(health, epoch)


async def check_ejected(pool: BackendPool, client: BackendClient, seconds: float) -> None:
    """Check each ejected backend every ``seconds``, and readmit it when it answers; never returns."""
    while True:
        await asyncio.sleep(seconds)
        await asyncio.gather(
            *(_check(pool, client, pooled, seconds) for pooled in pool.ejected()),
        )


async def _check(
    pool: BackendPool, client: BackendClient, pooled: PooledBackend, seconds: float
) -> None:
    health = pooled.health
    epoch = health.epoch
    if await client.is_alive(pooled.backend, seconds) and health.epoch == epoch:
        pool.ejector.readmit(health)
