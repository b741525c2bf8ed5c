"""Limits that several workers share in Redis, and the choice between the two stores.

One task owns the one connection: it sends the queued calls as one pipeline and reads exactly
their replies. So a cancelled caller never touches the connection, and a reply can never reach
another caller. After any failure the connection is closed, and for a while every worker keeps
its own limits: an outage of the store refuses no request and delays a call once.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from core.limits.buckets import (
    MINUTE,
    WINDOW_KEPT,
    Charge,
    Granted,
    Limiter,
    Refusal,
    WindowUnknown,
    refusal,
)
from core.limits.memory import MemoryLimiter
from core.limits.store import Command, ScriptStore
from core.monitoring.current_request import without_request
from core.monitoring.logs import Outages

log = logging.getLogger(__name__)

LARGEST_BATCH: Final = 64
"""Calls sent together; few, so that a burst does not look like a store that hangs."""

_MOST_KEPT: Final = 10_000
"""The most refunds kept while the store is down, and the most windows remembered as known."""

WORKER_SECONDS: Final = 15
"""A worker that used the store within this time counts as live."""

_COUNT_WORKERS: Final = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""

LARGEST_PARTS: Final = 6 * 10**15
"""The script's arithmetic is exact up to 2^53; a limit of more parts is cut to this many."""

LARGEST_LIMIT: Final = LARGEST_PARTS // MINUTE
"""The largest limit a minute that is kept unchanged."""

SCRIPT: Final = Path(__file__).with_name("script.lua").read_text(encoding="utf-8")

Reply = list[int] | None
"""What the script returned; None when the store did not answer."""


class Call:
    """One run of the script; ``reply`` is None for a settlement, which has no waiting caller."""

    __slots__ = ("amounts", "charges", "reply", "step")

    def __init__(
        self,
        step: str,
        charges: Sequence[Charge],
        amounts: Sequence[int],
        reply: asyncio.Future[Reply] | None,
    ) -> None:
        self.step = step
        self.charges = charges
        self.amounts = amounts
        self.reply = reply

    @property
    def is_abandoned(self) -> bool:
        """Whether its caller was cancelled."""
        return self.reply is not None and self.reply.cancelled()

    def command(self, script: str, prefix: str) -> tuple[str | int, ...]:
        """The Redis command; ``script`` is the digest of the loaded script."""
        keys = [prefix + charge.bucket for charge in self.charges]
        return ("EVALSHA", script, len(keys), *keys, self.step, *self.arguments())

    def arguments(self) -> list[int]:
        """The arguments of the script after its step, five for each charge."""
        seeds = self.step == "reserve"
        return [
            argument
            for charge, amount in zip(self.charges, self.amounts, strict=True)
            for argument in _arguments(charge, amount, seeds)
        ]


def _arguments(charge: Charge, amount: int, seeds: bool) -> tuple[int, int, int, int, int]:
    window, unit = charge.window, charge.unit
    limit = min(charge.limit, LARGEST_PARTS // unit)
    if window is None:
        return limit, amount, unit, 0, -1
    before = window.used_before
    known = -1 if before is None or not seeds else min(before, LARGEST_PARTS)
    return limit, amount, unit, max(1, window.ends_in + WINDOW_KEPT), known


class GrantedHere(Granted, kw_only=True):
    """A reservation ``taken`` from this worker's own buckets, each unit ``weight`` times."""

    taken: Granted
    weight: int


class WorkerShare:
    """Charges this worker's own buckets as if every live worker did the same."""

    def __init__(self) -> None:
        self._buckets = MemoryLimiter()

    def take(self, charges: Sequence[Charge], workers: int) -> Granted | Refusal:
        """Take every charge ``workers`` times, or none of them and return the refusal.

        A charge that fits the limit is never enlarged above it, nor above the rest of a window: the
        outage alone refuses no request. Raises ``WindowUnknown``.
        """
        taken = self._buckets.take([self._weighted(charge, workers) for charge in charges])
        if isinstance(taken, Granted):
            return GrantedHere(charges, taken=taken, weight=workers)
        asked = next(c for c in charges if c.bucket == taken.charge.bucket)
        return msgspec.structs.replace(taken, charge=asked)

    def settle(self, granted: GrantedHere, actual: Sequence[int]) -> None:
        """Correct each charge to its ``actual`` amount; only the first call counts."""
        taken = granted.taken
        self._buckets.settle(
            taken,
            [
                charged.amount if amount == asked.amount else amount * granted.weight
                for asked, charged, amount in zip(
                    granted.charges, taken.charges, actual, strict=True
                )
            ],
        )

    def forget_windows(self) -> None:
        """Drop every window, so that each begins again from ``used_before``."""
        self._buckets.forget_windows()

    def _weighted(self, charge: Charge, weight: int) -> Charge:
        most = charge.limit if charge.window is None else self._buckets.left_of(charge)
        amount = max(charge.amount, min(charge.amount * weight, most))
        return msgspec.structs.replace(charge, amount=amount)


def open_limiter(
    redis_url: str,
    *,
    workers: int = 1,
    prefix: str = "svc:limits:",
    timeout_seconds: float = 0.25,
) -> Limiter:
    """Open the store at ``redis_url``, or this process's memory when it is empty.

    ``workers`` is the least number of worker processes; it divides the limits while the store is
    down and no better count is known. ``timeout_seconds`` is the store's time to answer. Live
    workers are counted under the ``prefix``, so two limiters of one process need two prefixes.
    """
    if not redis_url:
        return MemoryLimiter()
    return RedisLimiter(redis_url, workers=workers, prefix=prefix, timeout_seconds=timeout_seconds)


class RedisLimiter:
    """Buckets in Redis 5 or newer, with its clock; used from one event loop.

    A call waits for the calls before it, and at most ``timeout_seconds`` for a store that does not
    answer. After a failure the worker keeps its share of the limits in memory, and probes the
    store in the background every ``pause_seconds``. The refill corrects within a period what the
    lost call took from a bucket or should have refunded.

    A window has no refill. So refunds to windows are kept until the store is back, and after each
    outage a worker charges every window with ``used_before`` once, which brings the store's count
    up to the ledger's.
    """

    def __init__(
        self,
        url: str,
        *,
        workers: int = 1,
        prefix: str = "svc:limits:",
        timeout_seconds: float = 0.25,
        pause_seconds: float = 1.0,
    ) -> None:
        self._store = ScriptStore(url, SCRIPT, timeout_seconds)
        self._prefix = prefix
        self._pause = pause_seconds
        self._queue: list[Call] = []
        self._task: asyncio.Task[None] | None = None
        self._resume_at: float | None = None
        self._here = WorkerShare()
        self._known_windows: set[str] = set()
        self._outages = Outages(log)
        self._late: deque[Call] = deque(maxlen=_MOST_KEPT)
        self._name = uuid.uuid4().hex
        self._least_workers = self._workers = max(workers, 1)
        self._count_at = 0.0

    @property
    def is_shared(self) -> bool:
        """Whether the store is in use; otherwise each worker keeps its own limits."""
        return self._resume_at is None

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        if not self.is_shared:
            self._probe_when_due()
            return self._here.take(charges, self._workers)
        if any(c.is_unseeded and c.bucket not in self._known_windows for c in charges):
            raise WindowUnknown
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        call = Call("reserve", charges, [charge.amount for charge in charges], reply)
        self._send(call)
        try:
            answer = await reply
        except asyncio.CancelledError:
            if not reply.cancelled():
                self._refund(call, reply.result())
            raise
        if answer is None:
            return self._here.take(charges, self._workers)
        self._learn(charges, answer)
        return Granted(charges) if answer[0] else refusal(charges, answer[1:])

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        if isinstance(granted, GrantedHere):
            self._here.settle(granted, actual)
            return
        if granted.settled:
            return
        granted.settled = True
        changes = [
            (charge, amount - charge.amount)
            for charge, amount in zip(granted.charges, actual, strict=True)
            if amount != charge.amount
        ]
        self._correct([c for c, _ in changes], [change for _, change in changes])

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._store.drop()

    def _learn(self, charges: Sequence[Charge], answer: list[int]) -> None:
        """Remember which windows the store knows since it is in use; raises ``WindowUnknown``."""
        windows = {charge.bucket for charge in charges if charge.window is not None}
        if answer[0] < 0:
            self._known_windows -= windows
            raise WindowUnknown
        if windows and self.is_shared:
            if len(self._known_windows) >= _MOST_KEPT:
                self._known_windows.clear()
            self._known_windows |= windows

    def _refund(self, call: Call, answer: Reply) -> None:
        """Refund a reservation whose caller was cancelled before it got the reply."""
        if answer is not None and answer[0] == 1:
            self._correct(call.charges, [-amount for amount in call.amounts])

    def _correct(self, charges: Sequence[Charge], changes: Sequence[int]) -> None:
        if charges:
            call = Call("settle", charges, changes, None)
            if self.is_shared:
                self._send(call)
            else:
                self._keep(call)

    def _keep(self, call: Call) -> None:
        """Keep the refunds of ``call`` to windows until the store is back.

        If only the store's reply was lost, they are refunded twice; ``used_before`` then corrects
        the count, which is too low.
        """
        kept = [
            (charge, amount)
            for charge, amount in zip(call.charges, call.amounts, strict=True)
            if charge.window is not None
        ]
        if kept:
            self._late.append(Call("settle", [c for c, _ in kept], [a for _, a in kept], None))

    def _send(self, call: Call) -> None:
        self._queue.append(call)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(
                self._work(), context=without_request()
            )

    async def _work(self) -> None:
        """Send the queued calls, batch after batch, until none is left."""
        try:
            while self._queue:
                batch, self._queue = self._queue[:LARGEST_BATCH], self._queue[LARGEST_BATCH:]
                await self._answer([call for call in batch if not call.is_abandoned])
        finally:
            self._task = None

    async def _answer(self, calls: Sequence[Call]) -> None:
        answers: Sequence[Reply] = [None] * len(calls)
        try:
            if calls and self.is_shared:
                answers = await self._try_exchange(calls) or answers
        finally:
            for call, answer in zip(calls, answers, strict=True):
                if call.is_abandoned:
                    self._refund(call, answer)
                elif call.reply is not None:
                    call.reply.set_result(answer)
                elif answer is None:
                    self._keep(call)

    def _probe_when_due(self) -> None:
        """Start a probe of the store when it is time, without waiting for it."""
        loop = asyncio.get_running_loop()
        if self._task is None and self._resume_at is not None and loop.time() >= self._resume_at:
            self._task = loop.create_task(self._probe(), context=without_request())

    async def _probe(self) -> None:
        try:
            if await self._try_exchange([]) is not None:
                self._resume_at = None
                self._outages.ended(
                    "the limit store answers again; limits are shared by all workers"
                )
                self._queue += self._late
                self._late.clear()
                await self._work()
        finally:
            self._task = None

    async def _try_exchange(self, calls: Sequence[Call]) -> list[list[int]] | None:
        """Return the replies to ``calls``, or None after a failure, which suspends the store."""
        try:
            return await self._exchange(calls)
        except (
            Exception
        ) as error:  # whatever the client raises, requests go on with this worker's own limits
            self._outages.failed(
                logging.WARNING,
                "the limit store failed (%s); each worker keeps its share of the limits",
                type(error).__name__,
            )
            if self.is_shared:
                self._known_windows.clear()
                self._here.forget_windows()
            self._resume_at = asyncio.get_running_loop().time() + self._pause
            self._count_at = 0.0
            return None

    async def _exchange(self, calls: Sequence[Call]) -> list[list[int]]:
        commands: list[Command] = [call.command(self._store.digest, self._prefix) for call in calls]
        now = asyncio.get_running_loop().time()
        if counting := now >= self._count_at:
            key = self._prefix + "workers"
            commands.append(("EVAL", _COUNT_WORKERS, 1, key, self._name, WORKER_SECONDS))
        answers = await self._store.exchange(commands)
        if counting:
            self._workers = max(self._least_workers, answers.pop())
            self._count_at = now + WORKER_SECONDS / 3
        return answers
