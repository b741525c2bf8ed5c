"""The gateway's own choice of backends in front of modelled replicas, in virtual time.

``python -m benchmarks.placement.simulate [--cells conv:32,agents:40] [--seeds 3,11]``

The event loop's clock jumps to the next timer, so that a run is exact, repeatable and not slowed by a
busy machine. HTTP and the rest of the gateway are left out: this compares placements, not gateways.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import itertools
import os
import random
import time
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
import django

django.setup()

from benchmarks.placement.engine import Card, Engine  # noqa: E402
from benchmarks.placement.workloads import Answer, Body, Run, Summary, encoded, summary  # noqa: E402
from core.errors import ApiError  # noqa: E402
from inference.backends.pool import BackendPool  # noqa: E402
from inference.backends.prompts import Prompt, prompt_of  # noqa: E402
from inference.backends.shared_marks import Told  # noqa: E402
from inference.catalog.snapshot import BackendRef, DeploymentRef, Timeouts  # noqa: E402
from inference.wire import ChatRequest  # noqa: E402
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage  # noqa: E402

CARD = Card()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is left to do."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__()

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        loop: Any = self
        if not loop._ready:
            while loop._scheduled and loop._scheduled[0]._cancelled:
                loop._timer_cancelled_count -= 1
                heapq.heappop(loop._scheduled)._scheduled = False
            if loop._scheduled:
                self.now = max(self.now, loop._scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: a workload in front of replicas, through ``workers``."""

    workload: str
    users: int
    seed: str
    seconds: float = 40.0
    warm: float = 10.0
    """The first seconds, which do not count."""
    replicas: int = 4
    workers: int = 1
    slots: int = 32
    card: Card = CARD
    slow: float = 1.0
    """So many times slower is the second replica."""
    round_robin: bool = False
    told_seconds: float | None = 0.05
    """Seconds until workers hear of each other's prompts; None: they never do."""


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of a cell, of each tenant, and the largest share of requests of a replica."""

    all: Summary
    tenants: dict[int, Summary]
    spread: float
    second: float
    """The second replica's requests, of the mean."""
    failures: int


class _Told:
    """Tells the other workers of a fleet of prompts, as ``SharedMarks`` does through Redis."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def tell(self, prompt: Prompt, backend_id: str) -> None:
        told = Told(prompt.organization_id, backend_id, prompt.size, prompt.marks)
        asyncio.get_running_loop().call_later(self._fleet.cell.told_seconds or 0, self._pass, told)

    def _pass(self, told: Told) -> None:
        for pool, marks in zip(self._fleet.pools, self._fleet.marks, strict=True):
            if marks is not self:
                pool.heard(told)


class Fleet:
    """The replicas, and the pools of the gateway's workers in front of them."""

    def __init__(self, cell: Cell, clock: Any) -> None:
        cards = [cell.card] * cell.replicas
        cards[1] = replace(cell.card, slow=cell.slow)
        self.cell, self.clock = cell, clock
        self.engines = [Engine(card, clock) for card in cards]
        backends = [
            BackendRef(
                f"b{at}", f"r{at}", f"http://127.0.0.1:{at + 1}/v1", {}, cell.slots,
                Timeouts(60, 30, 600, 0), RunningUsage.VLLM, OutputCapField.BOTH, b"",
                next(iter(KeepAlive)),
            )
            for at in range(cell.replicas)
        ]  # fmt: skip
        self.deployments = tuple(DeploymentRef(each, "m") for each in backends)
        self.marks = [
            _Told(self) if cell.workers > 1 and cell.told_seconds is not None else None
            for _ in range(cell.workers)
        ]
        self.pools = [
            BackendPool(homes=cell.workers > 1 and each is None, clock=clock, marks=each)
            for each in self.marks
        ]
        self._turn = itertools.count()
        self._chance = random.Random(1)

    async def ask(self, tenant: int, body: Body) -> Answer:
        if self.cell.round_robin:
            return await self._stream(self.engines[next(self._turn) % len(self.engines)], body)
        size = len(encoded(body))
        request = ChatRequest.from_fields(dict(body))
        pool = self._chance.choice(self.pools)
        organization = f"organization-{tenant}"
        try:
            lease = await pool.lease(self.deployments, prompt_of(request, organization, size))
        except ApiError as error:
            raise ConnectionError from error
        try:
            answer = await self._stream(
                self.engines[int(lease.deployment.backend.id[1:])], body, lease
            )
            lease.learn(answer.prompt_tokens, answer.cached_tokens)
            return answer
        finally:
            lease.release()

    async def _stream(self, engine: Engine, body: Body, lease: Any = None) -> Answer:
        running = engine.submit(body)
        first = 0.0
        while (await running.progress.get()) is not None:
            if not first:
                first = self.clock()
                if lease is not None:
                    lease.answered()
        return Answer(first, running.text(0, running.generated), running.tokens, running.cached)


async def play(cell: Cell) -> Found:
    clock = asyncio.get_running_loop().time
    fleet = Fleet(cell, clock)
    engines = [asyncio.ensure_future(each.run()) for each in fleet.engines]
    run = Run(cell.seed, cell.seconds, fleet.ask, clock, asyncio.sleep)
    await run.workload(cell.workload, cell.users)
    for each in engines:
        each.cancel()
    seen = [each for each in run.seen if cell.warm <= each.at <= cell.seconds]
    seconds = cell.seconds - cell.warm
    asked = [each.requests for each in fleet.engines]
    mean = max(sum(asked), 1) / len(asked)
    tenants = sorted({each.tenant for each in seen})
    return Found(
        summary(seen, seconds),
        {
            tenant: summary([each for each in seen if each.tenant == tenant], seconds)
            for tenant in tenants
        },
        max(asked) / mean,
        asked[1] / mean,
        run.failures,
    )


def simulated(cell: Cell) -> Found:
    """Play ``cell`` in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(play(cell))
    finally:
        loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="conv:32,conv:96,agents:40,shared:96,none:32,fair:24")
    parser.add_argument("--seeds", default="3,11")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--slots", type=int, default=32)
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--slow", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--round-robin", action="store_true")
    parser.add_argument("--untold", action="store_true", help="workers hear nothing of each other")
    parser.add_argument("--warm", type=float, default=10.0, help="first seconds, not counted")
    given = parser.parse_args()
    for each, seed in itertools.product(given.cells.split(","), given.seeds.split(",")):
        workload, _, users = each.partition(":")
        card = Card(batch=given.batch, blocks=given.blocks)
        cell = Cell(
            workload, int(users), seed, given.seconds, given.warm, 4, given.workers, given.slots,
            card, given.slow, given.round_robin, None if given.untold else 0.05,
        )  # fmt: skip
        began = time.process_time()
        found = simulated(cell)
        spent = time.process_time() - began
        print(
            f"{each:10} seed {seed:>2}: {found.all}; spread {found.spread:.2f}, "
            f"second {found.second:.2f}, {found.failures} failed, {spent:.0f} s",
            flush=True,
        )
        if len(found.tenants) > 1:
            for tenant, figures in found.tenants.items():
                print(f"{'':13}tenant {tenant}: {figures}")


if __name__ == "__main__":
    main()
