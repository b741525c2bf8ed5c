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
from dataclasses import dataclass
from types import FrameType

from svc_project.serving.lifeline import Heartbeats, ParentEnd

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_RESTART_SECONDS = 1.0


@dataclass
class _Worker:
    number: int
    process: subprocess.Popen[bytes]
    line: ParentEnd


class Supervisor:
    """Starts workers, replaces those that die or hang, passes SIGTERM on and waits for them.

    A worker hangs when its event loop has sent no heartbeat for ``silence_seconds``; 0 disables
    the check.
    """

    def __init__(
        self, count: int, sockets: Sequence[socket.socket], silence_seconds: float
    ) -> None:
        self._count = count
        self._sockets = sockets
        self._silence_seconds = silence_seconds
        self._heartbeats = Heartbeats()
        self._workers: list[_Worker] = []
        self._stopping = False

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; returns when every worker has drained and ended."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Under nohup SIGHUP is ignored: the server outlives its terminal.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        self._workers = [self._start(number) for number in range(self._count)]
        while not self._stopping:
            time.sleep(_LOOK_SECONDS)
            self._kill_silent()
            self._replace_dead()
        for worker in self._workers:
            worker.process.send_signal(signal.SIGTERM)
        while any(worker.process.poll() is None for worker in self._workers):
            time.sleep(_LOOK_SECONDS)
            self._kill_silent()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _kill_silent(self) -> None:
        beats = {worker.process.pid: worker.line.has_beaten() for worker in self._workers}
        silent = self._heartbeats.seconds_silent(time.monotonic(), beats)
        if not self._silence_seconds:
            return
        for worker in self._workers:
            seconds = silent.get(worker.process.pid, 0.0)
            if seconds > self._silence_seconds and worker.process.poll() is None:
                log.error(
                    "worker %d hangs: its event loop has not turned for %.0f s. It is killed",
                    worker.process.pid,
                    seconds,
                )
                worker.process.kill()
                worker.process.wait()

    def _replace_dead(self) -> None:
        for index, worker in enumerate(self._workers):
            if worker.process.poll() is not None and not self._stopping:
                process = worker.process
                log.error(
                    "worker %d ended with %d and is replaced", process.pid, process.returncode
                )
                worker.line.close()
                self._heartbeats.remove(process.pid)
                # A worker that dies at once must not make the parent loop without pause.
                time.sleep(_RESTART_SECONDS)
                self._workers[index] = self._start(worker.number)

    def _start(self, number: int) -> _Worker:
        line = ParentEnd()
        descriptors = [listener.fileno() for listener in self._sockets]
        process = subprocess.Popen(  # noqa: S603  # our own command line
            [
                sys.executable,
                "manage.py",
                "serve",
                "--sockets",
                ",".join(map(str, descriptors)),
                "--lifeline",
                str(line.descriptor),
            ],
            pass_fds=[*descriptors, line.descriptor],
            env={**os.environ, "SVC_WORKER": str(number)},
        )
        line.close_worker_end()
        return _Worker(number, process, line)
