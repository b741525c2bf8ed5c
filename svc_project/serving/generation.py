"""The processes of one release under ``serve``'s parent: its workers, and the page process of several."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final

from svc_project.serving.child import Child, Process
from svc_project.serving.lifeline import Heartbeats, ParentEnd, Plan
from svc_project.serving.listeners import BACKLOG

log = logging.getLogger(__name__)

_COUNT_BYTES: Final = 4 * 1024
"""Four for each worker, of which there are at most 1024."""
_HOST: Final = socket.gethostname()[:40]
"""So short that PostgreSQL, which keeps 63 bytes of a name, cuts nothing behind it."""
_PROCESSORS: Final = os.cpu_count() or 1
_PAGES_END_SECONDS: Final = 20.0
"""The time for the page process to end after the last worker."""


class NoPageSocket(Exception):
    """The socket of the page process cannot be made; the message says why, and what to set."""


class Stage(Enum):
    """What the processes of a generation do."""

    STARTING = "starting"
    """They are not all ready."""
    SERVING = "serving"
    LEAVING = "leaving"
    """They take no new connections and finish what runs."""


class Generation:
    """All processes of one start or reload, which serve on ``sockets`` of the parent.

    ``number`` counts starts and reloads from 1; ``program`` is the command line that children get more
    words for. The first worker checks the settings and says how many processes there are to be; the
    others start once it serves, since they would take the processors from it. With ``waits``, because
    another generation serves, half of the processors start processes at a time, and no worker takes a
    connection before ``take_over``. Nor does one beside workers that take them before it is ready: it
    may have no keys and no catalog, since the database is away, and would fail what the others answer.
    """

    def __init__(
        self,
        number: int,
        sockets: Sequence[socket.socket],
        program: Sequence[str],
        *,
        waits: bool = False,
    ) -> None:
        self.number = number
        self._waits = waits
        self._name = secrets.token_hex(8)
        self.stage = Stage.STARTING
        self.plan: Plan | None = None
        self.children: list[Child] = []
        """The first worker, the page process if there are several, and the other workers."""
        self._sockets = sockets
        self._program = program
        self._heartbeats = Heartbeats()
        self._page_directory = tempfile.mkdtemp(prefix="svc-pages-")
        self._page_listener: socket.socket | None = None
        self._last_worker_end, self._kept_open = os.pipe()
        self._counts = _counts()
        self._ended_at: float | None = None

    # -- starting ----------------------------------------------------------------------------

    def start_first(self, number: int) -> None:
        """Start the first worker, which checks the settings."""
        self.children.append(self._start_worker(number, 0))

    def go_on_starting(self, numbers: Sequence[int]) -> None:
        """Start the others once the first worker serves; ``numbers`` are free ones.

        Raises ``NoPageSocket``.
        """
        if self.plan is None:
            self.plan = self.children[0].line.plan()
            if self.plan is None:
                return
            if self.plan.workers > 1:
                self._page_listener = self._listen()
            else:
                shutil.rmtree(self._page_directory, ignore_errors=True)
        if not self.first_is_ready:
            return
        free, beginning = iter(numbers), self._begun().count(False)
        at_a_time = _PROCESSORS // 2 if self._waits else self._processes
        while len(self.children) < self._processes and beginning < max(1, at_a_time):
            share = len(self.children) - 1
            child = self._start_worker(next(free), share) if share else self._start_pages()
            self.children.append(child)
            beginning += 1

    @property
    def _processes(self) -> int:
        """How many there are to be, the page process of several workers included."""
        return 0 if self.plan is None else self.plan.workers + (self.plan.workers > 1)

    def _begun(self) -> list[bool]:
        return [self._heartbeats.has_begun(child.process.pid) for child in self.children]

    @property
    def is_ready(self) -> bool:
        """Whether every process has sent a heartbeat."""
        return 0 < self._processes <= len(self.children) and all(self._begun())

    @property
    def can_take_over(self) -> bool:
        """Whether every process has begun, and says that it is ready: its ``/readyz`` is 200."""
        return self.is_ready and all(child.line.is_ready for child in self.children)

    @property
    def first_is_ready(self) -> bool:
        """Whether any worker has sent a heartbeat."""
        return any(
            self._heartbeats.has_begun(child.process.pid)
            for child in self.children
            if child.is_worker
        )

    def _listen(self) -> socket.socket:
        """Listen for the workers' requests to the page process, in a directory of this user alone."""
        address = self._page_address
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            listener.close()
            # A path too long for an address (unix(7)) is the usual reason.
            raise NoPageSocket(
                f"Cannot listen on {address}: {error}. Set TMPDIR to a directory of at most 80 "
                "characters that this user may write to."
            ) from None
        return listener

    @property
    def _page_address(self) -> str:
        return str(Path(self._page_directory) / "socket")

    def _start_worker(self, number: int, share: int, restarts: int = 0) -> Child:
        served = [listener.fileno() for listener in self._sockets]
        roles = ["--sockets", ",".join(map(str, served)), "--keep", str(self._kept_open)]
        roles += ["--share", str(share), "--counts", str(self._counts)]
        descriptors = [*served, self._kept_open, self._counts]
        return self._start(number, share, roles, descriptors, restarts)

    def _start_pages(self, restarts: int = 0) -> Child:
        assert self._page_listener is not None  # noqa: S101  # the plan has several workers
        descriptors = [self._page_listener.fileno(), self._last_worker_end]
        roles = ["--pages", str(descriptors[0]), "--until", str(descriptors[1])]
        return self._start(None, 0, roles, descriptors, restarts)

    def _start(
        self,
        number: int | None,
        share: int,
        roles: list[str],
        descriptors: list[int],
        restarts: int,
    ) -> Child:
        line = ParentEnd()
        waits = number is not None and (self._waits or self._takes_connections)
        if waits:
            line.wait()
        roles = [*roles, "--lifeline", str(line.descriptor)]
        if self.children:
            # The first worker has checked the settings; each process would print their warnings again.
            roles.append("--skip-checks")
        process = subprocess.Popen(  # noqa: S603  # our own command line
            [*self._program, "serve_process", *roles],
            pass_fds=[*descriptors, line.descriptor],
            env={
                # What PostgreSQL shows of the process's sessions (libpq, PGAPPNAME).
                "PGAPPNAME": f"svc-{_HOST}-{'pages' if number is None else number}",
                **os.environ,
                "SVC_WORKER": str(0 if number is None else number),
                "SVC_WORKER_RESTARTS": str(restarts),
                "SVC_GENERATION": self._name,
                "SVC_PAGE_SOCKET": self._page_address,
            },
        )
        line.close_worker_end()
        return Child(number, share, Process(process.pid, process), line, restarts, waits)

    # -- watching ----------------------------------------------------------------------------

    def look(self) -> None:
        """Read the heartbeats, and kill the processes whose event loop hangs."""
        if self.plan is None:
            return
        beats = {child.process.pid: child.line.has_beaten() for child in self.children}
        silent = self._heartbeats.seconds_silent(time.monotonic(), beats)
        for child in self.children:
            seconds = silent.get(child.process.pid, 0.0)
            if 0 < self.plan.silence_seconds < seconds and child.process.runs():
                log.error(
                    "%s hangs: its event loop has not turned for %.0f s. It is killed",
                    child.name,
                    seconds,
                )
                child.process.send(signal.SIGKILL)
        if self.stage is not Stage.LEAVING and not self._waits:
            self._accept()

    def _accept(self) -> None:
        """Let the workers that are ready take connections; where none does, also one that is not."""
        for child in self.children:
            has_begun = child.waits and self._heartbeats.has_begun(child.process.pid)
            if has_begun and (child.line.is_ready or not self._takes_connections):
                child.accept()

    @property
    def _takes_connections(self) -> bool:
        """Whether a worker runs that takes connections."""
        return any(
            child.is_worker
            and not child.waits
            and self._heartbeats.has_begun(child.process.pid)
            and child.process.runs()
            for child in self.children
        )

    def dead(self) -> list[Child]:
        """The processes that have ended and were not replaced."""
        return [child for child in self.children if not child.process.runs()]

    def replace(self, child: Child) -> None:
        """Start another process in the place of ``child``, which has ended."""
        log.error("%s ended with %s and is replaced", child.name, child.process.status)
        self._forget(child)
        place = self.children.index(child)
        self.children[place] = (
            self._start_pages(child.restarts + 1)
            if child.number is None
            else self._start_worker(child.number, child.share, child.restarts + 1)
        )

    def _forget(self, child: Child) -> None:
        child.line.close()
        self._heartbeats.remove(child.process.pid)

    # -- ending ------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Let the workers take connections, because all are ready."""
        self.stage, self._waits = Stage.SERVING, False
        for child in self.children:
            if child.is_worker:
                child.accept()

    def hand_over(self) -> None:
        """Let the workers finish what runs, because the next generation serves."""
        self.stage = Stage.LEAVING
        for child in self.children:
            if child.is_worker:
                child.line.hand_over()

    def terminate(self) -> None:
        """Let the workers drain and end."""
        self.stage = Stage.LEAVING
        for child in self.children:
            if child.is_worker:
                child.process.send(signal.SIGTERM)

    def has_ended(self) -> bool:
        """Whether every process has ended; called again and again after ``terminate`` or ``hand_over``.

        The page process ends by itself after the last worker, because each of them, and this
        process, keeps one end of a pipe open.
        """
        for child in self.dead():
            self._forget(child)
            self.children.remove(child)
        if any(child.is_worker for child in self.children):
            return False
        if self._ended_at is None:
            self._ended_at = time.monotonic()
            os.close(self._kept_open)
        for child in self.children:
            if time.monotonic() > self._ended_at + _PAGES_END_SECONDS:
                log.error("%s does not end. It is killed", child.name)
                child.process.send(signal.SIGKILL)
        if self.children:
            return False
        os.close(self._last_worker_end)
        os.close(self._counts)
        if self._page_listener is not None:
            self._page_listener.close()
        shutil.rmtree(self._page_directory, ignore_errors=True)
        return True

    # -- over an exec ------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """Return what the next program of this process needs to adopt the generation.

        Its descriptors stay open then.
        """
        kept = [self._last_worker_end, self._kept_open, self._counts]
        if self._page_listener is not None:
            kept.append(self._page_listener.fileno())
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        return {
            "number": self.number,
            "name": self._name,
            "stage": self.stage.value,
            "plan": vars(self.plan) if self.plan is not None else None,
            "page_directory": self._page_directory,
            "descriptors": kept,
            "children": [
                [child.number, child.share, child.process.pid, child.line.keep_over_exec()]
                for child in self.children
            ],
        }

    @classmethod
    def adopted(
        cls, saved: dict[str, Any], sockets: Sequence[socket.socket], program: Sequence[str]
    ) -> Generation:
        """The generation that the previous program of this process has saved."""
        self = cls.__new__(cls)
        self.number, self.stage = saved["number"], Stage(saved["stage"])
        self._waits = False
        # A program of release 0.5 gave its processes none.
        self._name = saved.get("name", "")
        self.plan = Plan(**saved["plan"]) if saved["plan"] is not None else None
        self._sockets, self._program = sockets, program
        self._heartbeats = Heartbeats()
        self._page_directory = saved["page_directory"]
        self._ended_at = None
        kept = saved["descriptors"]
        for descriptor in kept:
            os.set_inheritable(descriptor, False)
        self._last_worker_end, self._kept_open, self._counts = kept[:3]
        self._page_listener = socket.socket(fileno=kept[3]) if kept[3:] else None
        self.children = []
        for number, share, pid, descriptor in saved["children"]:
            with contextlib.suppress(OSError):
                line = socket.socket(fileno=descriptor)
                line.set_inheritable(False)
                self.children.append(Child(number, share, Process(pid), ParentEnd(line)))
        return self


def _counts() -> int:
    """The descriptor of memory in which the workers say how many connections they have."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("svc-connections")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _COUNT_BYTES)
    return descriptor


def program_of(argument: str) -> list[str]:
    """The command line of this process's own program, ``argument`` being its ``sys.argv[0]``.

    Links in the path are kept: behind one an installation may switch to the next release.
    """
    return [sys.executable, os.path.abspath(argument)]
