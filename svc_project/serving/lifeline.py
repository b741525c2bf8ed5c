"""The pair of sockets between ``serve``'s parent and each of its children.

A child says how it was set up, then sends heartbeats of its event loop. On its end it learns that the
next generation of processes takes over, and that the parent has ended: the kernel closes the parent's
end with the parent, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Final

BEAT_SECONDS: Final = 0.5
_BEAT: Final = b"."
_UNREADY_BEAT: Final = b","
"""Of a worker that is not ready; to a parent of a release before, a heartbeat as any other."""
_HAND_OVER: Final = b"h"
_WAIT: Final = b"w"
_ACCEPT: Final = b"a"
_PLAN_END: Final = b"\n"
_MOST_READ: Final = 4096


@dataclass(frozen=True)
class Plan:
    """What the parent learns of the settings from the first worker, which has checked them.

    ``silence_seconds`` is the longest time without a heartbeat, 0 for any; ``state_file`` is where the
    parent says how it is.
    """

    workers: int
    silence_seconds: float
    state_file: str


class WorkerEnd:
    """The child's end, opened by the descriptor that the child was given."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self.waits = False
        """Whether the child takes no connection before the parent says so; the parent has said it before
        the child began."""
        with contextlib.suppress(OSError):
            self.waits = self._socket.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == _WAIT

    def introduce(self, plan: Plan) -> None:
        """Send the plan, before the first heartbeat."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps(asdict(plan)).encode() + _PLAN_END)

    def beat(self, *, is_ready: bool = True) -> None:
        """Send a heartbeat of the event loop; dropped when the parent does not read."""
        with contextlib.suppress(OSError):
            self._socket.send(_BEAT if is_ready else _UNREADY_BEAT, socket.MSG_DONTWAIT)

    def watch(
        self,
        orphaned: Callable[[], None],
        handed_over: Callable[[], None] = lambda: None,
        takes_over: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a thread that calls ``takes_over`` when a child that waits is to take connections,
        ``handed_over`` when the next generation takes over, and ``orphaned`` when the parent has ended.

        A thread, because a worker whose event loop hangs must end too.
        """

        def wait() -> None:
            with contextlib.suppress(OSError):
                while told := self._socket.recv(_MOST_READ):
                    if _ACCEPT in told:
                        takes_over()
                    if _HAND_OVER in told:
                        handed_over()
            orphaned()

        threading.Thread(target=wait, name="lifeline", daemon=True).start()


class ParentEnd:
    """The parent's end. ``descriptor`` is the child's end, to be passed to the child."""

    def __init__(self, adopted: socket.socket | None = None) -> None:
        if adopted is None:
            self._socket, self._workers = socket.socketpair()
        else:
            self._socket = self._workers = adopted
        self._socket.setblocking(False)
        self._read = b""
        self.is_ready = False
        """Whether the last heartbeat said that the child is ready."""

    @property
    def descriptor(self) -> int:
        return self._workers.fileno()

    def close_worker_end(self) -> None:
        """Close this process's copy of the child's end, once the child has it."""
        self._workers.close()

    def keep_over_exec(self) -> int:
        """Return the descriptor of this end, which the next program of this process adopts."""
        self._socket.set_inheritable(True)
        return self._socket.fileno()

    def plan(self) -> Plan | None:
        """The plan that the child has sent; None before it has."""
        # Nothing has come yet, or the child has ended with words of this process unread.
        with contextlib.suppress(OSError):
            self._read += self._socket.recv(_MOST_READ)
        line, end, self._read = self._read.partition(_PLAN_END)
        if not end:
            self._read = line
            return None
        said = json.loads(line)
        # The child may be of a later release, which says more.
        return Plan(**{each.name: said[each.name] for each in fields(Plan)})

    def has_beaten(self) -> bool:
        """Whether the child has sent a heartbeat since the last call."""
        beats, self._read = self._read, b""
        with contextlib.suppress(OSError):
            beats += self._socket.recv(_MOST_READ)
        # The plan of a first worker that was replaced is no heartbeat.
        beats = beats[beats.rfind(_PLAN_END) + 1 :]
        if beats:
            self.is_ready = beats.endswith(_BEAT)
        return bool(beats)

    def wait(self) -> None:
        """Let the child, which has not begun, take no connection before ``accept``.

        It is no argument of the child's, because the program may be of a release that does not know it.
        """
        self._socket.send(_WAIT)

    def accept(self) -> None:
        """Let a child that waits take connections."""
        with contextlib.suppress(OSError):
            self._socket.send(_ACCEPT)

    def hand_over(self) -> None:
        """Tell the child that the next generation takes over."""
        with contextlib.suppress(OSError):
            self._socket.send(_HAND_OVER)

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

    def has_begun(self, worker: int) -> bool:
        """Whether ``worker`` has ever sent a heartbeat."""
        return worker in self._since

    def remove(self, worker: int) -> None:
        self._since.pop(worker, None)
