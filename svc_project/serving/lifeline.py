"""The pair of sockets between ``serve``'s parent and each of its workers.

A worker sends heartbeats of its event loop on its end, and reads there that the parent has ended:
the kernel closes the parent's end with the parent, however it ends.
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
    """The worker's end, opened by the descriptor that the worker was given."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)

    def beat(self) -> None:
        """Send a heartbeat of the event loop; dropped when the parent does not read."""
        with contextlib.suppress(OSError):
            self._socket.send(_BEAT, socket.MSG_DONTWAIT)

    def watch(self, orphaned: Callable[[], None]) -> None:
        """Start a thread that calls ``orphaned`` when the parent has ended.

        A thread, because a worker whose event loop hangs must end too.
        """

        def wait() -> None:
            with contextlib.suppress(OSError):
                while self._socket.recv(_MOST_READ):
                    pass
            orphaned()

        threading.Thread(target=wait, name="lifeline", daemon=True).start()


class ParentEnd:
    """The parent's end. ``descriptor`` is the worker's end, to be passed to the worker."""

    def __init__(self) -> None:
        self._socket, self._workers = socket.socketpair()
        self._socket.setblocking(False)

    @property
    def descriptor(self) -> int:
        return self._workers.fileno()

    def close_worker_end(self) -> None:
        """Close this process's copy of the worker's end, once the worker has it."""
        self._workers.close()

    def has_beaten(self) -> bool:
        """Whether the worker has sent a heartbeat since the last call."""
        try:
            return bool(self._socket.recv(_MOST_READ))
        except OSError:
            return False

    def close(self) -> None:
        self._socket.close()


class Heartbeats:
    """The last heartbeat of each worker, in seconds of one clock.

    Time in which this process did not check does not count: the machine, or the whole group of
    processes, was stopped then. A worker counts from its first heartbeat on, because a start may
    take any time.
    """

    LONGEST_PAUSE: Final = 5.0

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._looked: float | None = None

    def seconds_silent(self, now: float, beats: dict[int, bool]) -> dict[int, float]:
        """Return each worker's seconds since its last heartbeat.

        ``beats``: whether each worker has sent one since the last call.
        """
        stood_still = self._looked is not None and now - self._looked > self.LONGEST_PAUSE
        self._looked = now
        for worker, has_beaten in beats.items():
            if has_beaten or (stood_still and worker in self._since):
                self._since[worker] = now
        return {worker: now - self._since[worker] for worker in beats if worker in self._since}

    def remove(self, worker: int) -> None:
        self._since.pop(worker, None)
