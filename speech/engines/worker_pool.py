"""The server's side of worker processes: start, run orders, replace. Embedded engines have them.

A worker takes one order at a time. A worker that dies is replaced and its order retried once; a
worker that times out is killed. The frames on the pipe: ``worker_frames``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from core.errors import ServerOverloaded
from core.monitoring.metrics import Counter
from core.sharing import processors
from core.sharing.fair_queue import FairQueue
from core.sharing.priority import Priority
from speech.engines import EngineError, EngineFull, EngineTimeout, worker_frames

OrderT = TypeVar("OrderT")
_Holder = tuple[str, Priority]
"""The organization and the class of a lease."""

_ROOT: Final = Path(__file__).resolve().parents[2]
_RUN: Final = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)
_STOP_SECONDS: Final = 1.0
_LARGEST_ANSWER: Final = 1 << 20


class WorkerDied(Exception):
    """The process ended, or sent an invalid answer."""


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a worker process, and what it must answer.

    ``name`` is used in errors. ``module`` is run by its name. ``ready`` is the payload of ``READY``,
    due within ``start_seconds``. An answer to an order has at most ``most_bytes``.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    ready: bytes
    start_seconds: float
    most_bytes: int


restarts = Counter(
    "svc_speech_engine_restarts",
    "Processes of an engine that were started in the place of one that died, hung or was stopped.",
    ("engine",),
)


class Worker:
    """A worker whose process is started when needed and replaced after its death."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: asyncio.subprocess.Process | None = None
        self._has_started = False

    @property
    def pid(self) -> int | None:
        """The id of the process; None while none runs."""
        process = self._process
        if process is None or process.returncode is not None:
            return None
        ended = process.stdout is not None and process.stdout.at_eof()
        return None if ended else process.pid

    async def start(self) -> None:
        """Start a process unless one runs. Raises ``EngineError`` when it does not start."""
        if self.pid is not None:
            return
        await self.kill()
        program = self._program
        if self._has_started:
            restarts.add(program.name)
        self._has_started = True
        try:
            self._process = await self._begun()
        except OSError as problem:  # no memory, or no descriptors
            raise EngineError(
                f"The {program.name} worker does not start: {problem.strerror}."
            ) from problem
        try:
            async with asyncio.timeout(program.start_seconds):
                kind, payload = await self._answer()
        except (TimeoutError, WorkerDied) as problem:
            await self.kill()
            raise EngineError(f"The {program.name} worker does not start.") from problem
        if kind != worker_frames.READY or payload != program.ready:
            await self.kill()
            reason = payload.decode(errors="replace")[:80]
            raise EngineError(f"The {program.name} worker does not start: {reason}.")

    async def _begun(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-c", _RUN, str(_ROOT), self._program.module),
            *self._program.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # Ctrl-C at a terminal is for the server, which drains
        )

    async def run(self, order: object) -> bytes:
        """Send ``order`` as JSON and return the answer. Raises ``WorkerDied``, ``EngineError``."""
        await self.start()
        assert self._process is not None  # noqa: S101 - start has made it; for the type checker
        assert self._process.stdin is not None  # noqa: S101 - made with a pipe
        message = msgspec.json.encode(order)
        self._process.stdin.write(worker_frames.ORDER.pack(len(message)) + message)
        received = bytearray()
        while True:
            kind, payload = await self._answer()
            if kind == worker_frames.END:
                return bytes(received)
            if kind == worker_frames.FAILED:
                reason = payload.decode(errors="replace")[:80]
                raise EngineError(f"The {self._program.name} engine refused: {reason}.")
            received += payload
            if kind != worker_frames.DATA or len(received) > self._program.most_bytes:
                raise WorkerDied

    async def _answer(self) -> tuple[bytes, bytes]:
        assert self._process is not None  # noqa: S101 - asked only with a process
        assert self._process.stdout is not None  # noqa: S101 - made with a pipe
        reader = self._process.stdout
        try:
            head = await reader.readexactly(worker_frames.ANSWER.size)
            kind, size = worker_frames.ANSWER.unpack(head)
            if size > _LARGEST_ANSWER:
                raise WorkerDied
            return kind, await reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as problem:
            raise WorkerDied from problem

    async def kill(self) -> None:
        """Kill the process; the next ``start`` makes a new one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.stdout is not None:
            # An ending process is not killed: asyncio's kill would reap it before its watcher.
            if not process.stdout.at_eof():
                _kill(process)
            # asyncio regards a process as ended only when its output was read to the end.
            with contextlib.suppress(ConnectionError):
                await process.stdout.read()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            _kill(process)
            await process.wait()

    async def stop(self) -> None:
        """Close the process's input so that it exits, and kill it after a timeout."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._process.wait()
        await self.kill()


class WorkerPool(ABC, Generic[OrderT]):
    """A fixed number of workers and a bounded queue of orders.

    An organization has at most all workers but one while another used them in the last minutes
    (``FairQueue``): it can send texts faster than they are spoken.
    """

    name: str

    def __init__(
        self, *, size: int, most_waiting: int, wait_seconds: float, order_seconds: float
    ) -> None:
        self._size = size
        self._slots = FairQueue(size, most_waiting, wait_seconds, 1 / size)
        self._order_seconds = order_seconds
        self._closed = False
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._running: set[asyncio.Task[bytes]] = set()
        self._root: Path | None = None

    @abstractmethod
    def make_worker(self, directory: Path, number: int) -> Worker:
        """Make worker ``number``, which may keep files in ``directory``, which does not exist yet.

        Where workers differ in priority, the first has the highest.
        """

    def retry_order(self, order: OrderT) -> OrderT:
        """The order to send instead of ``order``, which crashed a worker."""
        return order

    @property
    def size(self) -> int:
        """The number of workers, running or not."""
        return self._size

    @property
    def orders(self) -> int:
        """The orders that run or wait."""
        return self._slots.inflight + self._slots.waiting

    async def run_on_all(self, orders: tuple[OrderT, ...]) -> None:
        """Run ``orders`` on every worker, so that later orders find the data loaded."""
        await asyncio.gather(*(self.run(order) for order in orders for _ in range(self._size)))

    def _set_up(self) -> None:
        if self._closed:
            raise EngineError(f"The {self.name} engine is closed.")
        if self._root is None:
            try:
                root = self._with_workers()
            except OSError as problem:  # a full disk, or an installation without the engine's files
                raise EngineError(
                    f"The {self.name} engine does not start: {problem.strerror}."
                ) from problem
            self._root = root
            self._idle = self._workers.copy()

    def _with_workers(self) -> Path:
        """A directory for what the workers keep, which are made with it."""
        root = Path(tempfile.mkdtemp(prefix=f"svc-{self.name}-"))
        try:
            self._workers = [self.make_worker(root / str(n), n) for n in range(self._size)]
        except BaseException:
            shutil.rmtree(root, ignore_errors=True)
            raise
        return root

    async def run(
        self,
        order: OrderT,
        organization_id: str = "",
        *,
        is_long: bool = False,
        priority: Priority = Priority.STANDARD,
    ) -> bytes:
        """Run an order. Raises ``EngineFull``, ``EngineTimeout`` or ``EngineError``.

        One of a long text gets the last worker that is free, any other the first.
        Waiting organizations take turns, in the class ``priority``. When the caller is cancelled, a
        running order is finished and its answer dropped, which costs less than a new worker.
        """
        self._set_up()
        holder = organization_id, priority
        worker = await self._lease(holder, is_long=is_long)
        if self._closed:
            self._release(worker, holder)
            raise EngineError(f"The {self.name} engine is closed.")
        task = asyncio.create_task(self._run_on(worker, order, holder))
        self._running.add(task)
        task.add_done_callback(self._discard)
        return await asyncio.shield(task)

    def _discard(self, task: asyncio.Task[bytes]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved when the caller was cancelled

    async def _lease(self, holder: _Holder, *, is_long: bool) -> Worker:
        try:
            await self._slots.acquire(*holder)
        except ServerOverloaded:
            raise EngineFull(f"The {self.name} engine and its queue are full.") from None
        worker = (max if is_long else min)(self._idle, key=self._workers.index)
        self._idle.remove(worker)
        return worker

    def _release(self, worker: Worker, holder: _Holder) -> None:
        self._idle.append(worker)
        self._slots.release(*holder)

    async def _run_on(self, worker: Worker, order: OrderT, holder: _Holder) -> bytes:
        try:
            async with asyncio.timeout(self._order_seconds):
                try:
                    return await worker.run(order)
                except WorkerDied:
                    await worker.kill()
                    return await worker.run(self.retry_order(order))
        except WorkerDied:
            await worker.kill()
            raise EngineError(f"The text crashed the {self.name} engine twice.") from None
        except TimeoutError:
            await worker.kill()
            raise EngineTimeout(f"The {self.name} engine took too long.") from None
        except asyncio.CancelledError:
            await worker.kill()
            raise
        finally:
            self._release(worker, holder)

    async def close(self) -> None:
        """Stop every worker and delete its files."""
        self._closed = True
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)


def _environment() -> dict[str, str]:
    """No settings and no keys; numpy, where a worker needs it, without a thread for each core."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    if usable := processors.unshared():
        kept[worker_frames.PROCESSORS] = ",".join(map(str, usable))
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
