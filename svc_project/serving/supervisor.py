"""Several worker processes on the same sockets, and one page process, kept alive by one parent."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from svc_project.serving.lifeline import Heartbeats, ParentEnd

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
_RESTART_SECONDS = 1.0
_PAGES_END_SECONDS = 20.0
"""The time for the page process to end after the last worker."""
_BACKLOG = 2048
_MOST_STARTS = 5
"""Processes that may end before any worker has ever become ready."""
_PROGRAM = Path(__file__).resolve().parents[2] / "manage.py"


class NeverReady(Exception):
    """No worker has ever become ready; the message says what to look at."""


class NoPageSocket(Exception):
    """The socket of the page process cannot be made; the message says why, and what to set."""


@dataclass
class _Child:
    """``number`` of a worker; None for the page process."""

    number: int | None
    process: subprocess.Popen[bytes]
    line: ParentEnd

    @property
    def name(self) -> str:
        kind = "page process" if self.number is None else "worker"
        return f"{kind} {self.process.pid}"

    @property
    def runs(self) -> bool:
        return self.process.poll() is None


class Supervisor:
    """Starts workers and the page process, replaces those that die or hang, passes SIGTERM on to the
    workers and waits for all.

    A process hangs when its event loop has sent no heartbeat for ``silence_seconds``; 0 disables
    the check. The page process ends by itself after this process and all workers, because each of
    them keeps one end of a pipe open.
    """

    def __init__(
        self, count: int, sockets: Sequence[socket.socket], silence_seconds: float
    ) -> None:
        self._count = count
        self._sockets = sockets
        self._silence_seconds = silence_seconds
        self._heartbeats = Heartbeats()
        self._children: list[_Child] = []
        self._stopping = False
        self._was_ready = False
        self._failed_starts = 0

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; returns when every process has ended.

        Raises ``NoPageSocket``, and ``NeverReady`` when process after process ends in its start.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # Under nohup SIGHUP is ignored: the server outlives its terminal.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        with _listening() as (self._pages, self._page_address):
            self._last_worker_end, self._kept_open = os.pipe()
            self._children = [self._start(number) for number in (None, *range(self._count))]
            try:
                while not self._stopping:
                    time.sleep(_LOOK_SECONDS)
                    self._kill_silent()
                    self._replace_dead()
            finally:
                self._end()

    def _end(self) -> None:
        # The workers have copies; with the last one's the address is free.
        for each in self._sockets:
            each.close()
        workers = [child for child in self._children if child.number is not None]
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        while any(worker.runs for worker in workers):
            time.sleep(_LOOK_SECONDS)
            self._kill_silent()
        os.close(self._kept_open)
        for child in self._children:
            try:
                child.process.wait(_PAGES_END_SECONDS)
            except subprocess.TimeoutExpired:
                log.error("%s does not end. It is killed", child.name)
                child.process.kill()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _kill_silent(self) -> None:
        beats = {child.process.pid: child.line.has_beaten() for child in self._children}
        self._was_ready |= any(
            beats[child.process.pid] for child in self._children if child.number is not None
        )
        silent = self._heartbeats.seconds_silent(time.monotonic(), beats)
        if not self._silence_seconds:
            return
        for child in self._children:
            seconds = silent.get(child.process.pid, 0.0)
            if seconds > self._silence_seconds and child.runs:
                log.error(
                    "%s hangs: its event loop has not turned for %.0f s. It is killed",
                    child.name,
                    seconds,
                )
                child.process.kill()
                child.process.wait()

    def _replace_dead(self) -> None:
        for index, child in enumerate(self._children):
            if not child.runs and not self._stopping:
                self._count_start(child)
                log.error("%s ended with %d and is replaced", child.name, child.process.returncode)
                child.line.close()
                self._heartbeats.remove(child.process.pid)
                # A process that dies at once must not make the parent loop without pause.
                time.sleep(_RESTART_SECONDS)
                self._children[index] = self._start(child.number)

    def _count_start(self, child: _Child) -> None:
        self._failed_starts += 1
        if not self._was_ready and self._failed_starts >= _MOST_STARTS:
            raise NeverReady(
                f"No worker became ready: {child.name} is the {_MOST_STARTS}th process that ended, "
                f"with {child.process.returncode}. Its own last lines say why."
            )

    def _start(self, number: int | None) -> _Child:
        """Start a worker, or the page process."""
        line = ParentEnd()
        if number is None:
            descriptors = [self._pages.fileno(), self._last_worker_end]
            roles = ["--pages", str(descriptors[0]), "--until", str(descriptors[1])]
        else:
            served = [listener.fileno() for listener in self._sockets]
            descriptors = [*served, self._kept_open]
            roles = ["--sockets", ",".join(map(str, served)), "--keep", str(self._kept_open)]
        # The parent has checked the settings, and each process would print their warnings again.
        roles += ["--lifeline", str(line.descriptor), "--skip-checks"]
        process = subprocess.Popen(  # noqa: S603  # our own command line
            [sys.executable, str(_PROGRAM), "serve", *roles],
            pass_fds=[*descriptors, line.descriptor],
            env={
                **os.environ,
                "SVC_WORKER": str(self._count if number is None else number),
                "SVC_PAGE_SOCKET": self._page_address,
            },
        )
        line.close_worker_end()
        return _Child(number, process, line)


@contextmanager
def _listening() -> Iterator[tuple[socket.socket, str]]:
    """Listen for the workers' requests to the page process, in a directory of this user alone.

    The page process removes the directory when this process was killed.
    """
    directory = Path(tempfile.mkdtemp(prefix="svc-pages-"))
    address = str(directory / "socket")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            # A path too long for an address (unix(7)) is the usual reason.
            raise NoPageSocket(
                f"Cannot listen on {address}: {error}. Set TMPDIR to a directory of at most 80 "
                "characters that this user may write to."
            ) from None
        yield listener, address
    finally:
        listener.close()
        shutil.rmtree(directory, ignore_errors=True)
