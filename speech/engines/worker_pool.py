"""Worker processes of an embedded engine as the server sees them: start, ask, replace.

A worker takes one order at a time. One that dies is replaced and its order tried once more; one
that is late is killed. What crosses the pipe: ``worker_frames``.
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

from speech.engines import EngineError, EngineFull, EngineTimeout, worker_frames
from svc_project.lib.capacity import Slots
from svc_project.lib.errors import ServerOverloaded

OrderT = TypeVar("OrderT")

_ROOT: Final = Path(__file__).resolve().parents[2]
_RUN: Final = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__')"
)
_STOP_SECONDS: Final = 1.0
_LARGEST_ANSWER: Final = 1 << 20


class WorkerDied(Exception):
    """The process ended, or answered what no worker answers."""


@dataclass(frozen=True, slots=True)
class Program:
    """What a worker process runs, and what it must say of itself.

    ``name`` stands in errors. ``module`` is run by its name with ``flags`` for the interpreter
    beside ``-I``. ``ready`` is what it says after ``READY``, within ``start_seconds``. An answer
    has at most ``most_bytes``.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    ready: bytes
    start_seconds: float
    most_bytes: int
    flags: tuple[str, ...] = ()


class Worker:
    """One place for a process."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process's id while there is one."""
        process = self._process
        if process is None or process.returncode is not None:
            return None
        ended = process.stdout is not None and process.stdout.at_eof()
        return None if ended else process.pid

    async def start(self) -> None:
        """Have a process. Raises ``EngineError`` when the program cannot work here."""
        if self.pid is not None:
            return
        await self.kill()
        program = self._program
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", *program.flags, "-c", _RUN, str(_ROOT), program.module),
            *program.arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            start_new_session=True,  # Ctrl-C at a terminal is for the server, which drains
        )
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

    async def ask(self, order: object) -> bytes:
        """What ``order``, written as JSON, is answered by; raises ``WorkerDied``, ``EngineError``."""
        await self.start()
        assert self._process is not None  # noqa: S101 - start has made it; for the type checker
        assert self._process.stdin is not None  # noqa: S101 - made with a pipe
        message = msgspec.json.encode(order)
        self._process.stdin.write(worker_frames.ORDER.pack(len(message)) + message)
        heard = bytearray()
        while True:
            kind, payload = await self._answer()
            if kind == worker_frames.END:
                return bytes(heard)
            if kind == worker_frames.FAILED:
                reason = payload.decode(errors="replace")[:80]
                raise EngineError(f"The {self._program.name} engine refused: {reason}.")
            heard += payload
            if kind != worker_frames.DATA or len(heard) > self._program.most_bytes:
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
        """End the process now; the next ``start`` makes another."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.stdout is not None:
            # One that dies by itself is left to: asyncio's kill would reap it before its watcher.
            if not process.stdout.at_eof():
                _kill(process)
            # asyncio takes a process as ended only when its output was read to the end.
            with contextlib.suppress(ConnectionError):
                await process.stdout.read()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            _kill(process)
            await process.wait()

    async def stop(self) -> None:
        """End the process by ending its input, and kill it if it does not care."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._process.wait()
        await self.kill()


class WorkerPool(ABC, Generic[OrderT]):
    """A fixed number of workers, and a bounded number of orders that wait for one."""

    name: str

    def __init__(
        self, *, size: int, most_waiting: int, wait_seconds: float, order_seconds: float
    ) -> None:
        self._size = size
        self._slots = Slots(size, most_waiting, wait_seconds)
        self._order_seconds = order_seconds
        self._closed = False
        self._workers: list[Worker] = []
        self._idle: list[Worker] = []
        self._running: set[asyncio.Task[bytes]] = set()
        self._root: Path | None = None

    @abstractmethod
    def make_worker(self, directory: Path) -> Worker:
        """A worker that may keep files in ``directory``, which does not exist yet."""

    def again(self, order: OrderT) -> OrderT:
        """What an order is tried again as, after a worker died of it."""
        return order

    @property
    def size(self) -> int:
        """How many workers there are, running or not."""
        return self._size

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def ask_all(self, orders: tuple[OrderT, ...]) -> None:
        """Give each worker each of ``orders``, so that no later one waits for what they load."""
        await asyncio.gather(*(self.ask(order) for order in orders for _ in range(self._size)))

    def _set_up(self) -> None:
        if self._closed:
            raise EngineError(f"The {self.name} engine is closed.")
        if self._root is None:
            root = Path(tempfile.mkdtemp(prefix=f"svc-{self.name}-"))
            try:
                self._workers = [self.make_worker(root / str(n)) for n in range(self._size)]
            except BaseException:
                shutil.rmtree(root, ignore_errors=True)
                raise
            self._root = root
            self._idle = self._workers.copy()

    async def ask(self, order: OrderT, organization_id: str = "") -> bytes:
        """The answer to an order. Raises ``EngineFull``, ``EngineTimeout`` or ``EngineError``.

        Organizations that wait take turns. When the caller is cancelled, an order that a worker
        already has is finished unheard, which costs less than a new worker.
        """
        self._set_up()
        worker = await self._lease(organization_id)
        if self._closed:
            self._give_back(worker)
            raise EngineError(f"The {self.name} engine is closed.")
        task = asyncio.create_task(self._on(worker, order))
        self._running.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: asyncio.Task[bytes]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen where the caller has gone

    async def _lease(self, organization_id: str) -> Worker:
        try:
            await self._slots.acquire(organization_id)
        except ServerOverloaded:
            raise EngineFull(f"The {self.name} engine and its queue are full.") from None
        return self._idle.pop()

    def _give_back(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._slots.release()

    async def _on(self, worker: Worker, order: OrderT) -> bytes:
        try:
            async with asyncio.timeout(self._order_seconds):
                try:
                    return await worker.ask(order)
                except WorkerDied:
                    await worker.kill()
                    return await worker.ask(self.again(order))
        except WorkerDied:
            await worker.kill()
            raise EngineError(f"The {self.name} engine died of the text, twice.") from None
        except TimeoutError:
            await worker.kill()
            raise EngineTimeout(f"The {self.name} engine took too long.") from None
        except asyncio.CancelledError:
            await worker.kill()
            raise
        finally:
            self._give_back(worker)

    async def close(self) -> None:
        """Stop every worker and remove its files."""
        self._closed = True
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        await asyncio.gather(*(worker.stop() for worker in self._workers))
        if self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
