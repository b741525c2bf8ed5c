"""Prefetching: an engine speaks the next pieces while the earlier ones are encoded and sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Produced(Generic[Item]):
    item: Item


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: Exception | None


async def prefetch(source: AsyncGenerator[Item, None], most: int) -> AsyncGenerator[Item, None]:
    """Yield the items of ``source``, which runs in its own task up to ``most`` items ahead.

    An exception of ``source`` is raised after the items before it. Closing this closes ``source``.
    """
    items: asyncio.Queue[_Produced[Item] | _Ended] = asyncio.Queue(most)

    async def fill() -> None:
        failure = None
        async with aclosing(source):
            try:
                async for item in source:
                    await items.put(_Produced(item))
            except Exception as error:
                failure = error
        await items.put(_Ended(failure))

    filling = asyncio.create_task(fill())
    try:
        while isinstance(received := await items.get(), _Produced):
            yield received.item
        if received.failure is not None:
            raise received.failure
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
