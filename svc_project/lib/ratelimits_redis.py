"""Token buckets that several workers share in Redis, and the choice between the two stores.

One task owns the one connection: it sends whatever calls have gathered as one pipeline and reads
exactly their replies. So a caller that is cancelled never touches the connection, and a reply can
never reach another caller. Anything that goes wrong drops the connection, and for a while every
worker keeps limits by itself: an outage of the store refuses nobody and delays a call once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from redis.asyncio.connection import AbstractConnection, ConnectionPool

from svc_project.lib.ratelimits import Charge, Granted, Limiter, MemoryLimiter, Refusal, refusal

log = logging.getLogger(__name__)

LARGEST_LIMIT: Final = 10**11
"""Limits above this are kept as this: the script's arithmetic is exact up to 2^53."""

LARGEST_BATCH: Final = 64
"""Calls sent together, so few that a burst does not look like a store that hangs."""

_SCRIPT: Final = Path(__file__).with_name("ratelimits.lua").read_text(encoding="utf-8")

WORKER_SECONDS: Final = 15
"""A worker that used the store within this time counts as live."""

_COUNT_WORKERS: Final = """
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
"""


def open_limiter(redis_url: str, *, workers: int = 1, timeout_seconds: float = 0.05) -> Limiter:
    """The store at ``redis_url``, or this process's memory when it is empty.

    ``workers`` is how many worker processes there are at least; it divides the limits while the
    store is away and no better count is known; ``timeout_seconds`` is the time it has to answer.
    """
    if not redis_url:
        return MemoryLimiter()
    return RedisLimiter(redis_url, workers=workers, timeout_seconds=timeout_seconds)


class _GrantedHere(Granted, kw_only=True):
    """A reservation that was ``taken`` from this worker's own buckets, each unit ``weight`` times."""

    taken: Granted
    weight: int


class _Call:
    """One run of the script; ``reply`` is None for a settlement, which nobody waits for."""

    __slots__ = ("amounts", "charges", "reply", "step")

    def __init__(
        self,
        step: str,
        charges: Sequence[Charge],
        amounts: Sequence[int],
        reply: asyncio.Future[list[int] | None] | None,
    ) -> None:
        self.step = step
        self.charges = charges
        self.amounts = amounts
        self.reply = reply

    @property
    def is_abandoned(self) -> bool:
        """Whether its caller was cancelled."""
        return self.reply is not None and self.reply.cancelled()

    def command(self, script: str | bytes, prefix: str) -> tuple[str | bytes | int, ...]:
        """As Redis takes it; ``script`` is the digest that the script was loaded under."""
        keys = [prefix + charge.bucket for charge in self.charges]
        figures = [
            figure
            for charge, amount in zip(self.charges, self.amounts, strict=True)
            for figure in (min(charge.limit, LARGEST_LIMIT), amount)
        ]
        return ("EVALSHA", script, len(keys), *keys, self.step, *figures)


class RedisLimiter:
    """Buckets in Redis 5 or newer, with its clock; used from one event loop.

    A call waits for the calls before it, and ``timeout_seconds`` at most for a store that does not
    answer. After a failure the worker keeps limits by itself, at its share of them, and asks the
    store again in the background every ``pause_seconds``. What the lost call took from the store,
    or should have given back, is mended by the refill within a minute.
    """

    def __init__(
        self,
        url: str,
        *,
        workers: int = 1,
        prefix: str = "svc:limits:",
        timeout_seconds: float = 0.05,
        pause_seconds: float = 1.0,
    ) -> None:
        self._pool = ConnectionPool.from_url(
            url, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds
        )
        self._prefix = prefix
        self._timeout = timeout_seconds
        self._pause = pause_seconds
        self._connection: AbstractConnection | None = None
        self._script: str | bytes = b""
        self._queue: list[_Call] = []
        self._task: asyncio.Task[None] | None = None
        self._resume_at: float | None = None
        self._here = MemoryLimiter()
        self._name = uuid.uuid4().hex
        self._least_workers = self._workers = max(workers, 1)
        self._count_at = 0.0

    @property
    def is_shared(self) -> bool:
        """Whether the store is in use; otherwise limits are kept per worker."""
        return self._resume_at is None

    async def reserve(self, charges: Sequence[Charge]) -> Granted | Refusal:
        if not self.is_shared:
            self._ask_again()
            return self._reserve_here(charges)
        reply: asyncio.Future[list[int] | None] = asyncio.get_running_loop().create_future()
        call = _Call("reserve", charges, [charge.amount for charge in charges], reply)
        self._send(call)
        try:
            answer = await reply
        except asyncio.CancelledError:
            if not reply.cancelled():
                self._give_back(call, reply.result())
            raise
        if answer is None:
            return self._reserve_here(charges)
        return Granted(charges) if answer[0] else refusal(charges, answer[1:])

    def settle(self, granted: Granted, actual: Sequence[int]) -> None:
        if isinstance(granted, _GrantedHere):
            self._settle_here(granted, actual)
            return
        if granted.settled:
            return
        granted.settled = True
        changes = [
            (charge, amount - charge.amount)
            for charge, amount in zip(granted.charges, actual, strict=True)
            if amount != charge.amount
        ]
        if changes and self.is_shared:
            self._send(_Call("settle", [c for c, _ in changes], [d for _, d in changes], None))

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        await self._drop()

    def _reserve_here(self, charges: Sequence[Charge]) -> Granted | Refusal:
        """Charge this worker's buckets as if every live worker did the same.

        A charge that fits the limit is never made larger than it: the outage alone refuses nobody.
        """
        weight = self._workers
        taken = self._here.take(
            [
                msgspec.structs.replace(
                    charge, amount=max(charge.amount, min(charge.amount * weight, charge.limit))
                )
                for charge in charges
            ]
        )
        if isinstance(taken, Granted):
            return _GrantedHere(charges, taken=taken, weight=weight)
        asked = next(c for c in charges if c.bucket == taken.charge.bucket)
        return msgspec.structs.replace(taken, charge=asked)

    def _settle_here(self, granted: _GrantedHere, actual: Sequence[int]) -> None:
        taken = granted.taken
        self._here.settle(
            taken,
            [
                charged.amount if amount == asked.amount else amount * granted.weight
                for asked, charged, amount in zip(
                    granted.charges, taken.charges, actual, strict=True
                )
            ],
        )

    def _give_back(self, call: _Call, answer: list[int] | None) -> None:
        """Undo a reservation whose caller was cancelled before it heard of it."""
        if answer is not None and answer[0] and self.is_shared:
            self._send(_Call("settle", call.charges, [-amount for amount in call.amounts], None))

    def _send(self, call: _Call) -> None:
        self._queue.append(call)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        """Send what has gathered, batch after batch, until nothing is left."""
        try:
            while self._queue:
                batch, self._queue = self._queue[:LARGEST_BATCH], self._queue[LARGEST_BATCH:]
                await self._answer([call for call in batch if not call.is_abandoned])
        finally:
            self._task = None

    async def _answer(self, calls: Sequence[_Call]) -> None:
        answers: Sequence[list[int] | None] = [None] * len(calls)
        try:
            if calls and self.is_shared:
                answers = await self._try_exchange(calls) or answers
        finally:
            for call, answer in zip(calls, answers, strict=True):
                if call.is_abandoned:
                    self._give_back(call, answer)
                elif call.reply is not None:
                    call.reply.set_result(answer)

    def _ask_again(self) -> None:
        """Start a look at the store when it is time; nobody waits for it."""
        loop = asyncio.get_running_loop()
        if self._task is None and self._resume_at is not None and loop.time() >= self._resume_at:
            self._task = loop.create_task(self._probe())

    async def _probe(self) -> None:
        try:
            if await self._try_exchange([]) is not None:
                self._resume_at = None
                log.info("the limit store answers again; limits are shared by all workers")
        finally:
            self._task = None

    async def _try_exchange(self, calls: Sequence[_Call]) -> list[list[int]] | None:
        """The answers to ``calls``, or None after a failure, which puts the store out of use."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(calls)
        except (
            Exception
        ) as error:  # whatever the client raises, requests go on with limits kept here
            if self.is_shared:
                log.warning(
                    "the limit store failed (%s); each worker keeps its share of the limits",
                    type(error).__name__,
                )
            self._resume_at = asyncio.get_running_loop().time() + self._pause
            return None

    async def _exchange(self, calls: Sequence[_Call]) -> list[list[int]]:
        try:
            connection = self._connection or await self._connect()
            commands: list[Sequence[Any]] = [
                call.command(self._script, self._prefix) for call in calls
            ]
            now = asyncio.get_running_loop().time()
            if counting := now >= self._count_at:
                key = self._prefix + "workers"
                commands.append(("EVAL", _COUNT_WORKERS, 1, key, self._name, WORKER_SECONDS))
            await connection.send_packed_command(
                connection.pack_commands(commands), check_health=False
            )
            answers = [await connection.read_response() for _ in commands]
        except BaseException:
            # Replies may still be under way: nobody may read from this connection again.
            await self._drop()
            raise
        if counting:
            self._workers = max(self._least_workers, answers.pop())
            self._count_at = now + WORKER_SECONDS / 3
        return answers

    async def _connect(self) -> AbstractConnection:
        self._count_at = 0.0
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]  # typed in part
        self._connection = connection
        await connection.connect()  # type: ignore[no-untyped-call]  # likewise
        await connection.send_command("SCRIPT", "LOAD", _SCRIPT)
        self._script = await connection.read_response()
        return connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                await connection.disconnect(nowait=True)
