"""The espeak-ng workers as the server sees them: start, ask, replace.

A worker takes one order at a time. One that dies is replaced and its order tried once more, with
the text cut to plain words; one that is late is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import espeakng_loader

from speech.engines import EngineError, EngineFull, EngineTimeout, espeak_worker
from speech.engines.sanitize import plain_words
from svc_project.lib.capacity import Slots
from svc_project.lib.errors import ServerOverloaded

WORKER_RATE = 22_050
"""Samples per second that espeak-ng delivers."""

_LONGEST_DATA_PATH = 140
_START_SECONDS = 10.0
_STOP_SECONDS = 1.0
_LARGEST_ANSWER = 1 << 20
_MOST_SAMPLES = 300 * WORKER_RATE


class WorkerDied(Exception):
    """The process ended, or answered what no worker answers."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told: names and ranges are espeak-ng's, speak_lib.h."""

    voice: str
    text: str
    rate: int = 175
    pitch: int = 50
    range: int = 50
    volume: int = 100
    variant: str | None = None


_WARMING = (Order(voice="en-us", text="Ready."), Order(voice="hi", text="\u0939\u093e\u0901"))


class Worker:
    """One place for a process, and the data directory that its processes use in turn."""

    def __init__(self, directory: Path) -> None:
        """``directory`` is made, with links to espeak-ng's files, so that a voice can be added."""
        if len(str(directory)) > _LONGEST_DATA_PATH:
            raise EngineError(
                f"The directory for temporary files has too long a path for espeak-ng: "
                f"{directory}. Set TMPDIR to one of at most 100 characters."
            )
        self._directory = directory
        self._process: asyncio.subprocess.Process | None = None
        _lay_over(Path(espeakng_loader.get_data_path()), directory / "espeak-ng-data")

    @property
    def pid(self) -> int | None:
        """The process's id while there is one."""
        process = self._process
        if process is None or process.returncode is not None:
            return None
        ended = process.stdout is not None and process.stdout.at_eof()
        return None if ended else process.pid

    async def start(self) -> None:
        """Have a process. Raises ``EngineError`` when espeak-ng cannot work here."""
        if self.pid is not None:
            return
        await self.kill()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-I", "-S", espeak_worker.__file__),
            *(espeakng_loader.get_library_path(), str(self._directory)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            start_new_session=True,  # Ctrl-C at a terminal is for the server, which drains
        )
        try:
            async with asyncio.timeout(_START_SECONDS):
                kind, payload = await self._answer()
        except (TimeoutError, WorkerDied) as problem:
            await self.kill()
            raise EngineError("The espeak-ng worker does not start.") from problem
        if kind != espeak_worker.READY or payload != str(WORKER_RATE).encode():
            await self.kill()
            raise EngineError(f"The espeak-ng worker does not start: {payload.decode()[:80]}.")

    async def ask(self, order: Order) -> bytes:
        """The order's samples, ``WORKER_RATE`` a second; raises ``WorkerDied``, ``EngineError``."""
        await self.start()
        assert self._process is not None  # noqa: S101 - start has made it; for the type checker
        assert self._process.stdin is not None  # noqa: S101 - made with a pipe
        message = json.dumps(asdict(order)).encode()
        self._process.stdin.write(espeak_worker.ORDER.pack(len(message)) + message)
        heard = bytearray()
        while True:
            kind, payload = await self._answer()
            if kind == espeak_worker.END:
                return bytes(heard)
            if kind == espeak_worker.FAILED:
                raise EngineError(f"The embedded engine refused: {payload.decode()[:80]}.")
            heard += payload
            if kind != espeak_worker.AUDIO or len(heard) > 2 * _MOST_SAMPLES:
                raise WorkerDied

    async def _answer(self) -> tuple[bytes, bytes]:
        assert self._process is not None  # noqa: S101 - asked only with a process
        assert self._process.stdout is not None  # noqa: S101 - made with a pipe
        reader = self._process.stdout
        try:
            head = await reader.readexactly(espeak_worker.ANSWER.size)
            kind, size = espeak_worker.ANSWER.unpack(head)
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


class WorkerPool:
    """A fixed number of workers, and a bounded number of orders that wait for one."""

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

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    async def start(self) -> None:
        """Start every worker and let it read its dictionaries, so that no order waits for that."""
        self._set_up()
        await asyncio.gather(*(self.speak(order) for order in _WARMING for _ in self._workers))

    def _set_up(self) -> None:
        if self._closed:
            raise EngineError("The embedded engine is closed.")
        if self._root is None:
            root = Path(tempfile.mkdtemp(prefix="svc-espeak-"))
            try:
                self._workers = [Worker(root / str(number)) for number in range(self._size)]
            except BaseException:
                shutil.rmtree(root, ignore_errors=True)
                raise
            self._root = root
            self._idle = self._workers.copy()

    async def speak(self, order: Order, organization_id: str = "") -> bytes:
        """The order's samples. Raises ``EngineFull``, ``EngineTimeout`` or ``EngineError``.

        Organizations that wait take turns. When the caller is cancelled, an order that a worker already has is finished unheard: that
        takes milliseconds, less than a new worker.
        """
        self._set_up()
        worker = await self._lease(organization_id)
        if self._closed:
            self._give_back(worker)
            raise EngineError("The embedded engine is closed.")
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
            raise EngineFull("The embedded engine and its queue are full.") from None
        return self._idle.pop()

    def _give_back(self, worker: Worker) -> None:
        self._idle.append(worker)
        self._slots.release()

    async def _on(self, worker: Worker, order: Order) -> bytes:
        try:
            async with asyncio.timeout(self._order_seconds):
                try:
                    return await worker.ask(order)
                except WorkerDied:
                    await worker.kill()
                    return await worker.ask(replace(order, text=plain_words(order.text)))
        except WorkerDied:
            await worker.kill()
            raise EngineError("The embedded engine died of the text, twice.") from None
        except TimeoutError:
            await worker.kill()
            raise EngineTimeout("The embedded engine took too long.") from None
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


def _lay_over(original: Path, copy: Path) -> None:
    """Link every file of ``original`` into ``copy``, whose ``voices/!v`` is a real directory."""
    copy.mkdir(parents=True)
    for entry in original.iterdir():
        if entry.is_dir() and entry.name in {"voices", "!v"}:
            _lay_over(entry, copy / entry.name)
        else:
            (copy / entry.name).symlink_to(entry)
