"""Workers hear of each other's prompts through the real Redis, and go on without it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from inference.backends.prompts import Prompt
from inference.backends.shared_marks import SharedMarks, Told
from tests.inference.backends.test_placement import ASKED, chat
from tests.support.servers.redis_store import PATIENT, REDIS_URL, Redis
from tests.support.until import until_async

pytestmark = pytest.mark.redis


class Worker:
    """What one worker hears."""

    def __init__(self, url: str, prefix: str) -> None:
        self.told: list[Told] = []
        self.others = False
        self.marks = SharedMarks(url, prefix=prefix, timeout_seconds=PATIENT)
        self.marks.start(self)

    def heard(self, told: Told) -> None:
        self.told.append(told)

    def hears(self, *, others: bool) -> None:
        self.others = others


@asynccontextmanager
async def workers(prefix: str, count: int = 2, url: str = REDIS_URL) -> AsyncIterator[list[Worker]]:
    found = [Worker(url, prefix) for _ in range(count)]
    try:
        yield found
    finally:
        for each in found:
            await each.marks.close()


def told(prompt: Prompt, backend_id: str) -> Told:
    return Told(prompt.organization_id, backend_id, prompt.size, prompt.marks)


FIRST = chat(ASKED, organization="acme-trains")
LATER = chat(ASKED, "Yes.", "Why?", organization="acme-trains")


async def test_the_others_hear_of_a_prompt_and_so_does_who_comes_after(prefix: str) -> None:
    async with workers(prefix, 3) as (teller, *others):
        teller.marks.tell(FIRST, "b0")
        teller.marks.tell(LATER, "b1")
        expected = [told(FIRST, "b0"), told(LATER, "b1")]
        await until_async(lambda: all(each.told == expected for each in others))
        async with workers(prefix, 1) as [new]:
            await until_async(lambda: new.told == expected)
            new.marks.tell(FIRST, "b2")
            await until_async(lambda: teller.told == [told(FIRST, "b2")])  # nothing of its own


async def test_a_worker_with_a_wrong_clock_hears_batch_by_batch(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workers(prefix) as (teller, other):
        for _ in range(5):
            other.told.clear()
            teller.marks.tell(FIRST, "b0")
            await until_async(lambda: other.told)
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + 3600)
        heard = [0]
        async with workers(prefix, 1) as [new]:

            async def watch() -> None:
                while heard[-1] < 5:
                    heard.append(len(new.told))
                    await asyncio.sleep(0)

            await asyncio.wait_for(watch(), 30)
    assert sorted(set(heard)) == [0, 1, 2, 3, 4, 5]


async def test_the_store_can_neither_read_nor_add_marks(prefix: str, settings: Any) -> None:
    async with workers(prefix) as (teller, other), redis.asyncio.from_url(REDIS_URL) as store:
        teller.marks.tell(FIRST, "b0")
        await until_async(lambda: other.told)
        kept = str(await store.xrange(prefix + "marks"))
        assert FIRST.organization_id not in kept
        assert not [mark for mark in FIRST.marks if str(mark) in kept]
        await store.xadd(prefix + "marks", {"anyone": b'[["a","b1",9,[1]]]'})
        await store.xadd(prefix + "marks", {"one": "1", "another": "2"})
        settings.SECRET_KEY = "of another installation that uses the same store"
        async with workers(prefix, 1) as [stranger]:
            stranger.marks.tell(LATER, "b1")
            await until_async(lambda: stranger.others)
            teller.marks.tell(LATER, "b2")
            await until_async(lambda: len(other.told) == 2)
            assert stranger.told == []
    assert other.told == [told(FIRST, "b0"), told(LATER, "b2")]


async def test_what_was_not_told_while_the_store_was_away_is_told_afterwards(
    tmp_path: Path, prefix: str
) -> None:
    store = Redis(tmp_path)
    store.start()
    try:
        async with workers(prefix, url=f"redis://127.0.0.1:{store.port}") as both:
            await until_async(lambda: all(each.others for each in both))
            store.kill()
            both[0].marks.tell(FIRST, "b0")
            await until_async(lambda: not any(each.others for each in both))
            store.start()  # empty
            await until_async(lambda: both[1].told == [told(FIRST, "b0")])
            await until_async(lambda: all(each.others for each in both))
    finally:
        store.kill()
