"""Several worker processes on the same sockets, kept alive by one parent."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_RESTART_SECONDS = 1.0


class Supervisor:
    """Starts workers, replaces those that die, passes SIGTERM on and waits for them."""

    def __init__(self, count: int, sockets: Sequence[socket.socket]) -> None:
        self._count = count
        self._sockets = sockets
        self._workers: list[subprocess.Popen[bytes]] = []
        self._stopping = False

    def run(self) -> None:
        """Run until SIGTERM or SIGINT; returns when every worker has drained and ended."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._workers = [self._start(number) for number in range(self._count)]
        while not self._stopping:
            time.sleep(_LOOK_SECONDS)
            self._replace_dead()
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            worker.wait()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _replace_dead(self) -> None:
        for index, worker in enumerate(self._workers):
            if worker.poll() is not None and not self._stopping:
                log.error("worker %d ended with %d and is replaced", worker.pid, worker.returncode)
                # A worker that dies at once must not make the parent spin.
                time.sleep(_RESTART_SECONDS)
                self._workers[index] = self._start(index)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        descriptors = [listener.fileno() for listener in self._sockets]
        return subprocess.Popen(  # noqa: S603  # our own command line
            [
                sys.executable,
                "manage.py",
                "serve",
                "--sockets",
                ",".join(map(str, descriptors)),
            ],
            pass_fds=descriptors,
            env={**os.environ, "SVC_WORKER": str(number)},
        )
