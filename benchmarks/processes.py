"""The processes under measurement: started, watched, stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.load import Load, Plan

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Server:
    """A server process that takes connections on ``port``; its output goes to ``log``."""

    def __init__(
        self,
        arguments: Sequence[str],
        port: int,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = port
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_seconds(self) -> float:
        """User and system time so far, all threads (proc(5), /proc/PID/stat)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_megabytes(self) -> float:
        """Resident memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise LookupError("VmRSS")

    def stop(self) -> None:
        """SIGTERM, and wait; SIGKILL when that is not heard."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
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


class LoadRun:
    """A load generator at work."""

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
        """What it saw, once it has ended; complaints are passed on."""
        output, complaints = self._process.communicate()
        if complaints:
            print(complaints.decode(), file=sys.stderr)
        if self._process.returncode:
            raise SystemExit("The load generator failed.")
        return msgspec.json.decode(output, type=Load)


def load(plan: Plan) -> Load:
    """Run ``plan`` to its end."""
    return LoadRun(plan).result()
