"""The processes under measurement: started, watched, stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from benchmarks.load import Load, Plan

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 120.0
"""A server that imports much takes long where other programs use the processors."""
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE_SECONDS = 0.1
"""An idle server with several workers uses less than this in a second."""


def stop_on_sigterm() -> None:
    """End this program by an exception on SIGTERM, so that the servers it started are stopped."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server that listens on ``port``, with its child processes; its output goes to ``log``.

    ``program`` runs with ``arguments`` in the checkout ``root``; by default it is this Python.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        port: int,
        log: Path,
        environment: Mapping[str, str] | None = None,
        root: Path = ROOT,
        *,
        program: str = sys.executable,
    ) -> None:
        self.port = port
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [program, *arguments],
                cwd=root,
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """User and system time so far, of all threads and all child processes."""
        return sum(map(_cpu_seconds, _tree(self.pid)))

    def cpu_by_child(self) -> dict[int, float]:
        """``cpu_seconds`` of each direct child process and its own children."""
        return {pid: sum(map(_cpu_seconds, _tree(pid))) for pid in _children(self.pid)}

    def resident_megabytes(self) -> float:
        """Resident memory now; what processes of the tree share is counted for each."""
        return sum(map(_resident_megabytes, _tree(self.pid)))

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until the server and its children have done what they do at their start."""
        deadline = time.monotonic() + seconds
        before = -1.0
        while (now := self.cpu_seconds()) - before > _IDLE_SECONDS and time.monotonic() < deadline:
            before = now
            time.sleep(1.0)

    def stop(self) -> None:
        """Send SIGTERM and wait; send SIGKILL after a timeout."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Send SIGKILL and wait, as where a server crashes."""
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise SystemExit(f"A server did not start:\n{self._log.read_text()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.stop()
        raise SystemExit(f"A server took too long to start:\n{self._log.read_text()}")


def _children(pid: int) -> list[int]:
    """The direct children of a process (proc(5), /proc/PID/task/TID/children)."""
    found: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in _children(pid):
        yield from _tree(child)


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process, with that of children that have ended (/proc/PID/stat)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def _resident_megabytes(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


class LoadRun:
    """A running load generator."""

    def __init__(self, plan: Plan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.load", msgspec.json.encode(plan).decode()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def result(self) -> Load:
        """Wait for its end and return its result; complaints are passed on."""
        output, complaints = self._process.communicate()
        if complaints:
            print(complaints.decode(), file=sys.stderr)
        if self._process.returncode:
            raise SystemExit("The load generator failed.")
        return msgspec.json.decode(output, type=Load)


def load(plan: Plan) -> Load:
    """Run ``plan`` to its end."""
    return LoadRun(plan).result()
