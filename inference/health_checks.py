"""Asking ejected backends whether they are back, so that no request has to try."""

from __future__ import annotations

import asyncio

from inference.backends import BackendClient
from inference.pool import BackendPool, Place


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
