"""The pair of sockets between ``serve``'s parent and each of its workers.

A worker says on its end that its event loop turns, and reads there that the parent has ended: the
kernel closes the parent's end with the parent, however it ends.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final

BEAT_SECONDS: Final = 0.5
_BEAT: Final = b"."
_MOST_READ: Final = 4096


class WorkerEnd:
    """What a worker has of it, by the descriptor that it was given."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def beat(self) -> None:
        """Say that the event loop turns. Nothing is said where the parent does not read."""
        with contextlib.suppress(OSError):
            self._socket.send(_BEAT, socket.MSG_DONTWAIT)

    def watch(self, orphaned: Callable[[], None]) -> None:
        """Have a thread call ``orphaned`` when the parent has ended.

        A thread, because a worker whose event loop hangs has to end as well.
        """

        def wait() -> None:
            with contextlib.suppress(OSError):
                while self._socket.recv(_MOST_READ):
                    pass
            orphaned()

        threading.Thread(target=wait, name="lifeline", daemon=True).start()


class ParentEnd:
    """What the parent has of it. ``descriptor`` is the worker's end, to be passed on."""

    def __init__(self) -> None:
        self._socket, self._workers = socket.socketpair()
        self._socket.setblocking(False)

    @property
    def descriptor(self) -> int:
        return self._workers.fileno()

    def passed_on(self) -> None:
        """The worker has its end: this process's copy of it is closed."""
        self._workers.close()

    def heard(self) -> bool:
        """Whether the worker has said anything since the last call."""
        try:
            return bool(self._socket.recv(_MOST_READ))
        except OSError:
            return False

    def close(self) -> None:
        self._socket.close()


class Silences:
    """Since when each worker has been silent, in seconds of one clock.

    Time in which this process did not look does not count: the machine, or the whole group of
    processes, stood still then. A worker counts from its first beat on, because starting takes as
    long as it takes.
    """

    LONGEST_LOOK: Final = 5.0

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._looked: float | None = None

    def look(self, now: float, heard: dict[int, bool]) -> dict[int, float]:
        """For how long each worker that has ever been heard is silent; ``heard`` since last time."""
        stood_still = self._looked is not None and now - self._looked > self.LONGEST_LOOK
        self._looked = now
        for worker, spoke in heard.items():
            if spoke or (stood_still and worker in self._since):
                self._since[worker] = now
        return {worker: now - self._since[worker] for worker in heard if worker in self._since}

    def forget(self, worker: int) -> None:
        self._since.pop(worker, None)
