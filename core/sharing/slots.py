"""The slots of a server, its ``max_concurrency``, divided among all workers of all hosts.

Each worker holds some of them and hands them out by itself (``FairQueue``), so that a request needs no
call of Redis. Through Redis a worker borrows what others do not need, several times a second and as soon
as a request waits. What all hold together is never more than the server's number: a worker gives up slots
before it says so, and gets more only by the store's answer. Where the store does not answer, each keeps what
it holds (``_Divided.outage``), and a store that lost its memory, or heard nothing for long, grants none
until all have told it what they hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from django.conf import settings

from core.asgi.drain import drain
from core.limits.store import ScriptStore
from core.monitoring.logs import Outages
from core.sharing.fair_queue import FairQueue

log = logging.getLogger(__name__)

_RENEWAL_SECONDS: Final = 0.2
"""How often each worker tells the store what it holds and needs."""
_SHORT_SECONDS: Final = 0.05
"""The same while requests wait here that the store had no slots for."""
_AWAY_SECONDS: Final = 1.0
"""How often a store that does not answer is tried."""
SILENT_SECONDS: Final = 15.0
"""The slots of a worker that was silent for so long are free: it has ended, or its host has."""
SETTLING_SECONDS: Final = 5.0
"""The time that workers have to tell what they hold to a store that lost its memory."""
_REFUSED_SECONDS: Final = 1.0
"""How long a request that was refused without a wait counts as one that waits."""
OUTAGE_SECONDS: Final = 30.0
"""After so long without a store most requests of borrowed slots have ended."""

_SCRIPT: Final = Path(__file__).with_name("slots.lua").read_text(encoding="utf-8")


@dataclass(slots=True)
class _Divided:
    """This worker's part of the ``most`` slots of one server."""

    queue: FairQueue
    most: int
    workers: int
    before: int
    """How many of the workers come before this one in their order."""
    answered: bool = False
    """Whether the store has ever answered."""
    granted: bool = False
    """Whether it has ever granted slots."""
    refused_at: float = -_REFUSED_SECONDS
    """When a request was refused last because there is no queue, on the monotonic clock."""
    told: int = 0
    """The slots that the last message to the store said are held here."""
    others_need: bool = False
    """Whether another worker has requests that wait for a slot."""
    others_below: bool = False
    """Whether such a worker holds less than its equal share, or none of fewer slots than workers."""

    @property
    def equal(self) -> int:
        """The equal share of this worker; those of all workers are ``most`` together."""
        return self.most // self.workers + (self.before < self.most % self.workers)

    @property
    def held(self) -> int:
        """What the server may see of this worker: more than the limit until requests above it end."""
        return max(self.queue.limit, self.queue.inflight)

    @property
    def need(self) -> int:
        """The slots that running and waiting requests need, and one that was refused just now."""
        waiting = self.queue.waiting or time.monotonic() - self.refused_at < _REFUSED_SECONDS
        return min(self.queue.inflight + waiting, self.most)

    @property
    def is_short(self) -> bool:
        """Whether requests wait for slots that this worker does not hold."""
        return self.need > self.queue.limit

    def wanted(self) -> int:
        """The slots that this worker wants to hold, so that others have what they need."""
        if drain.is_ending:
            # It keeps one slot more while no other worker needs it. A connection that is still open may bring
            # one more request, which then need not wait for the store to answer.
            lends = self.others_need or self.most < 2 * self.workers
            return self.need if lends else min(self.most, self.need + 1)
        if not self.granted:
            return max(self.need, self.equal)
        if not self.others_need:
            spare = max(1, self.queue.inflight // 4)
            return min(self.most, max(self.need + spare, (self.equal + 1) // 2))
        if self.others_below and self.most < self.workers:
            # There is not one for each: they take turns. A worker asks again only after it told that it
            # gave its slot back, so that another one has asked before.
            return 0 if self.held or self.told else min(self.need, 1)
        most = self.equal if self.others_below else self.most
        return min(most, max(self.need, int(self.equal > 1)))

    def give_up(self, wanted: int) -> None:
        """Hold no more than ``wanted``; step by step while no other worker has requests that wait."""
        limit = self.queue.limit
        if wanted < limit:
            slowly = not (self.others_need or drain.is_ending or limit > self.most)
            self.queue.limit = max(wanted, limit - 1 - limit // 8) if slowly else wanted

    def outage(self, seconds: float) -> None:
        """Hand out slots without the store, which has not answered for ``seconds``.

        What is held is kept: it is at least one slot, unless there are fewer than two for each worker. Then
        those that lent their only one get it back at last, and those that borrowed give it back at once.
        """
        limit, equal = self.queue.limit, self.equal
        if not self.answered or (
            self.most < 2 * self.workers and (limit > equal or seconds > OUTAGE_SECONDS)
        ):
            self.queue.limit = equal


class SharedSlots:
    """Divides slots among workers through the store at ``url``; with an empty one this worker has all.

    ``workers`` is the least number of them, and ``number`` this one's, for what is divided while the store
    has never answered. ``name`` is the worker's, and that of its successor where it crashes. Belongs to one
    event loop.
    """

    def __init__(
        self,
        url: str,
        *,
        workers: int = 1,
        number: int = 0,
        name: str = "",
        prefix: str = "svc:slots:",
        timeout_seconds: float = 0.25,
    ) -> None:
        self._store = ScriptStore(url, _SCRIPT, timeout_seconds) if url else None
        self._workers = workers
        self._number = number
        self._prefix = prefix
        self._name = name or uuid.uuid4().hex
        self._divided: dict[str, _Divided] = {}
        self._wakes = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._answers = False
        self._away_at = 0.0
        self._outages = Outages(log)

    def divide(self, server: str, queue: FairQueue, most: int) -> None:
        """Let ``queue`` hand out this worker's part of the ``most`` slots of ``server`` from now on."""
        if self._store is None:
            queue.limit = most
            return
        divided = self._divided.get(server)
        if divided is None or divided.queue is not queue:
            divided = _Divided(queue, most, self._workers, self._number % self._workers)
            self._divided[server] = divided
            # The equal share is a guess, for a store that does not answer.
            queue.limit = 0 if self._answers else divided.equal
            queue.on_wait = partial(self._wait_began, divided)
        else:
            before, divided.most = divided.most, most
            if most < before:
                queue.limit = min(queue.limit, divided.equal)
        self._wakes.set()

    def _wait_began(self, divided: _Divided) -> None:
        if not divided.queue.waiting:
            divided.refused_at = time.monotonic()
        if divided.is_short:
            self._wakes.set()

    def forget(self, server: str) -> None:
        """Hold no slots of ``server`` any longer; the store forgets it by itself."""
        self._divided.pop(server, None)

    def start(self) -> None:
        """Share with the other workers from now on."""
        if self._store is not None:
            self._answers = True
            self._task = asyncio.get_running_loop().create_task(self._share(self._store))

    async def close(self) -> None:
        """Give everything back, and close the connection."""
        if self._store is None:
            return
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._divided:
            commands = [("HDEL", self._prefix + each, self._name) for each in self._divided]
            with contextlib.suppress(Exception):  # the store forgets it by itself
                await self._store.exchange(commands)
        await self._store.drop()

    async def _share(self, store: ScriptStore) -> None:
        while True:
            self._wakes.clear()
            if not await self._renew(store):
                await asyncio.sleep(_AWAY_SECONDS)
            elif any(each.is_short for each in self._divided.values()):
                await asyncio.sleep(_SHORT_SECONDS)
            else:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(_RENEWAL_SECONDS, self._wakes.set)
                await self._wakes.wait()
                timer.cancel()

    async def _renew(self, store: ScriptStore) -> bool:
        """Tell the store what is held, and take what it grants. Returns whether it answered."""
        divided = list(self._divided.items())
        commands = [
            ("EVALSHA", store.digest, 1, self._prefix + server, *self._arguments(each))
            for server, each in divided
        ]
        if not commands:
            return True
        try:
            answers = await store.exchange(commands)
        except Exception as error:  # whatever the client raises, requests go on with what is held
            self._outages.failed(
                logging.WARNING,
                "the store of shared slots failed (%s); each worker keeps the slots that it has",
                type(error).__name__,
            )
            now = time.monotonic()
            if self._answers:
                self._answers, self._away_at = False, now
            for each in self._divided.values():
                each.outage(now - self._away_at)
            return False
        self._answers = True
        self._outages.ended("the store of shared slots answers again")
        for (_, each), answer in zip(divided, answers, strict=True):
            self._take(each, *answer)
        return True

    def _arguments(self, divided: _Divided) -> tuple[str | int, ...]:
        wanted = divided.wanted()
        if divided.granted:
            # While the store is away, it can grant these slots to no worker, and give none back to this one.
            if self._answers:
                divided.give_up(wanted)
        elif not divided.queue.inflight:
            # What it had until now was its own guess.
            divided.queue.limit = 0
        divided.told = divided.held
        return (
            self._name,
            time.monotonic_ns() // 1000,
            int(divided.granted),
            divided.told,
            wanted,
            divided.need,
            divided.most,
            self._workers,
            int(SILENT_SECONDS * 1000),
            int(SETTLING_SECONDS * 1000),
        )

    def _take(
        self,
        divided: _Divided,
        granted: int,
        workers: int,
        before: int,
        others_need: int,
        others_below: int,
    ) -> None:
        divided.answered = True
        divided.granted |= granted > 0
        divided.workers, divided.before = max(workers, self._workers), before
        divided.others_need, divided.others_below = bool(others_need), bool(others_below)
        if granted > divided.told:
            divided.queue.limit = min(granted, divided.most)


shared_slots: Final = SharedSlots(
    settings.REDIS_URL,
    workers=settings.SVC_WORKERS,
    number=settings.SVC_WORKER,
    name=f"{settings.SVC_GENERATION}.{settings.SVC_WORKER}" if settings.SVC_GENERATION else "",
    timeout_seconds=settings.SVC_LIMIT_STORE_SECONDS,
)
