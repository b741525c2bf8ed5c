"""When workers die, hang or are overloaded, callers get their answer or a clear error."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from core.errors import InternalError, ServerOverloaded
from speech.audio.pcm import duration
from speech.engines import EngineError, EngineFull, EngineTimeout, Utterance
from speech.engines.espeak.engine import Espeak
from speech.synthesis.script import read_script
from speech.synthesis.text_process import TextProcess
from tests.support.live import ROOT
from tests.support.processes import runs
from tests.support.servers.engine_processes import worker_pids
from tests.support.until import until_async

pytestmark = pytest.mark.slow

SENTENCE = Utterance("The old bridge was closed for the winter.", "en", "en-us")
BOUNDS: dict[str, Any] = {"most_waiting": 3, "wait_seconds": 60.0, "order_seconds": 60.0}


@dataclass(frozen=True)
class Kind:
    """A pool with one worker: how it is made and asked, and the errors of its callers."""

    module: str
    make: Callable[..., Any]
    start: Callable[[Any], Awaitable[None]]
    ask: Callable[[Any, str], Awaitable[bool]]
    """Whether the answer is right."""
    failed: type[Exception]
    full: type[Exception]
    hung: type[Exception]

    def pids(self) -> list[int]:
        return worker_pids(self.module)

    @asynccontextmanager
    async def open(self, **bounds: float) -> AsyncIterator[tuple[Any, int]]:
        """A started pool and the id of its worker, which may need several tries on a busy host."""
        pool = self.make(**{**BOUNDS, **bounds})

        async def is_started() -> bool:
            with suppress(self.hung):
                await self.start(pool)
            return bool(self.pids())

        try:
            await until_async(is_started)
            (pid,) = self.pids()
            yield pool, pid
        finally:
            await pool.close()

    async def works(self, pool: Any) -> None:
        """Return once an order is answered; one may take too long on a busy host."""

        async def is_answered() -> bool:
            try:
                return await self.ask(pool, "")
            except self.hung:
                return False

        await until_async(is_answered)


async def _spoken(engine: Espeak, organization_id: str) -> bool:
    spoken = engine.speak(replace(SENTENCE, organization_id=organization_id))
    return 1.0 < duration(b"".join([piece async for piece in spoken])) < 4.0


async def _read(texts: TextProcess, organization_id: str) -> bool:
    return await texts.read_script("My secret.", organization_id) == read_script("My secret.")


KINDS = [
    Kind(
        "speech.engines.espeak.worker",
        partial(Espeak, workers=1),
        Espeak.start,
        _spoken,
        *(EngineError, EngineFull, EngineTimeout),
    ),
    Kind(
        "speech.synthesis.text_worker",
        TextProcess,
        partial(TextProcess.start, hindi=True),
        _read,
        *(InternalError, ServerOverloaded, InternalError),
    ),
]


@pytest.fixture(params=KINDS, ids=["espeak", "text"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


async def begun(kind: Kind, pool: Any, pid: int) -> asyncio.Future[bool]:
    """An order that the stopped worker ``pid`` has got."""
    os.kill(pid, signal.SIGSTOP)
    waiting = asyncio.ensure_future(kind.ask(pool, ""))
    await until_async(lambda: bool(pool._pool._running))
    await asyncio.sleep(0)
    return waiting


async def test_an_order_outlives_the_death_of_its_worker(kind: Kind) -> None:
    async with kind.open() as (pool, pid):
        waiting = await begun(kind, pool, pid)
        os.kill(pid, signal.SIGKILL)

        assert await waiting
        assert kind.pids() not in ([], [pid])


async def test_an_order_whose_workers_both_die_is_an_error(kind: Kind) -> None:
    async with kind.open() as (pool, pid):
        waiting = await begun(kind, pool, pid)
        killed: set[int] = set()

        def kill_each() -> bool:
            for each in set(kind.pids()) - killed:
                os.kill(each, signal.SIGKILL)
                killed.add(each)
            return waiting.done()

        await until_async(kill_each)
        with pytest.raises(kind.failed) as caught:
            waiting.result()
        if kind.failed is InternalError:
            assert caught.value.__cause__ is None, "the row would name a failure of the engine"
        assert len(killed) >= 2
        await kind.works(pool)


async def test_a_worker_that_hangs_is_an_error_and_is_replaced(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    async with kind.open(order_seconds=3.0) as (pool, pid):
        waiting = await begun(kind, pool, pid)
        with pytest.raises(kind.hung):
            await waiting
        assert pid not in kind.pids()
        await kind.works(pool)

    assert ("took too long" in caplog.text) == (kind.hung is InternalError)
    assert "secret" not in caplog.text


async def test_orders_above_the_queue_are_refused_at_once_and_waiting_ones_after_a_timeout(
    kind: Kind,
) -> None:
    ended: list[int] = []

    def note(number: int, _: asyncio.Future[bool]) -> None:
        ended.append(number)

    async with kind.open(wait_seconds=1.0) as (pool, pid):
        os.kill(pid, signal.SIGSTOP)
        orders = [asyncio.ensure_future(kind.ask(pool, "")) for _ in range(6)]
        for number, order in enumerate(orders):
            order.add_done_callback(partial(note, number))
        await until_async(lambda: len(ended) == 5)
        os.kill(pid, signal.SIGCONT)
        results = await asyncio.gather(*orders, return_exceptions=True)

    assert [*map(type, results)] == [bool, *[kind.full] * 5]
    assert ended[:2] == [4, 5], "refused before the timeout of those that wait"


async def test_organizations_that_wait_take_turns(kind: Kind) -> None:
    answered: list[str] = []

    async def ask(organization_id: str) -> None:
        assert await kind.ask(pool, organization_id)
        answered.append(organization_id)

    async with kind.open(most_waiting=10) as (pool, pid):
        os.kill(pid, signal.SIGSTOP)
        crowd = [asyncio.create_task(ask("many")) for _ in range(5)]
        await asyncio.sleep(0)  # they are in the queue before the other one comes
        other = asyncio.create_task(ask("one"))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGCONT)
        await asyncio.gather(*crowd, other)

    assert answered.index("one") <= 2


async def test_closing_ends_running_orders_and_leaves_no_process(kind: Kind) -> None:
    async with kind.open() as (pool, pid):
        waiting = await begun(kind, pool, pid)
        await pool.close()

        with pytest.raises((kind.failed, asyncio.CancelledError)):
            await waiting
        with pytest.raises(kind.failed):
            await kind.ask(pool, "")
    assert kind.pids() == []


PROGRAM = """
import asyncio, os, signal
import django
django.setup()
from tests.speech.engines.test_worker_pool import KINDS

async def main():
    async with KINDS[{number}].open() as (_, pid):
        print(pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.long
async def test_a_worker_ends_with_the_server_however_it_ends(kind: Kind) -> None:
    program = PROGRAM.format(number=KINDS.index(kind))
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "svc_project.settings"}
    server = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=False
    )
    pid = int(server.stdout)

    await until_async(lambda: not runs(pid))
