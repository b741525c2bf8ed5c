"""An engine that goes on speaking while what it said is encoded and sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Said(Generic[Item]):
    item: Item


@dataclass(frozen=True, slots=True)
class _Ended:
    failure: Exception | None


async def run_ahead(source: AsyncGenerator[Item, None], most: int) -> AsyncGenerator[Item, None]:
    """The items of ``source``, which runs in a task of its own, up to ``most`` items ahead.

    What ``source`` raises is raised after the items before it. Closing this closes ``source``.
    """
    items: asyncio.Queue[_Said[Item] | _Ended] = asyncio.Queue(most)

    async def fill() -> None:
        failure = None
        async with aclosing(source):
            try:
                async for item in source:
                    await items.put(_Said(item))
            except Exception as error:
                failure = error
        await items.put(_Ended(failure))

    filling = asyncio.create_task(fill())
    try:
        while isinstance(next_one := await items.get(), _Said):
            yield next_one.item
        if next_one.failure is not None:
            raise next_one.failure
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
