"""A process that ``serve``'s parent has started, and what the parent knows of it."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass

from svc_project.serving.lifeline import ParentEnd


class Process:
    """A child process: started here, or by the program that this process executed before."""

    def __init__(self, pid: int, started: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self.status: int | None = None
        """The exit status, negative for a signal; None while the process runs."""
        self._started = started

    def runs(self) -> bool:
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.status = 0
            else:
                self.status = os.waitstatus_to_exitcode(status) if pid else None
            if self._started is not None and self.status is not None:
                self._started.returncode = self.status
        return self.status is None

    def send(self, number: signal.Signals) -> None:
        if self.runs():
            os.kill(self.pid, number)


@dataclass
class Child:
    """A worker, with its ``number`` and its ``share`` of the processors; the page process has neither."""

    number: int | None
    share: int
    process: Process
    line: ParentEnd
    restarts: int = 0
    """How often the process was replaced."""
    waits: bool = False
    """Whether it takes no connection before ``accept``."""

    def accept(self) -> None:
        """Let it take connections."""
        self.waits = False
        self.line.accept()

    @property
    def is_worker(self) -> bool:
        return self.number is not None

    @property
    def name(self) -> str:
        return f"{'worker' if self.is_worker else 'page process'} {self.process.pid}"
