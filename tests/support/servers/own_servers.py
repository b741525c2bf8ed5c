"""A PostgreSQL cluster and a Redis for tests that would disturb the shared ones.

Django is not needed here: its settings say where these servers are.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_START_SECONDS: Final = 20.0
_PORTS: Final = range(10_000, 32_768)
"""Below the ports that Linux gives to outgoing connections (``ip_local_port_range``): one of
those can be taken by any client's connection between the look and the server's start."""
_CHOICE: Final = random.SystemRandom()  # the seed that a test sets must not choose it


def free_port() -> int:
    """Return a port on which nothing listens."""
    while True:
        port = _CHOICE.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Postgresql:
    """A separate cluster; its commands run as a user that is allowed to run one."""

    def __init__(self, directory: Path) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self._programs = found[-1] if found else Path("/usr/bin")
        self._data = directory / "postgresql"
        self._data.mkdir(mode=0o700)
        self._user = "postgres" if os.getuid() == 0 else None
        if self._user:
            shutil.chown(self._data, self._user)
            directory.chmod(0o755)
        self.port = free_port()
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "postgres", "-E", "UTF8")
        try:
            self.start()
        except BaseException:
            # An exit meanwhile, such as by SIGTERM, would leave the server running.
            with suppress(subprocess.CalledProcessError):
                self.stop()
            raise
        self.url = self.url_through(self.port)

    def url_through(self, port: int) -> str:
        """Return the address of the cluster behind a proxy that listens on ``port``."""
        return f"postgres://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        log = str(self._data / "log")
        self._run("pg_ctl", "-D", str(self._data), "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        """Stop at once, like a crash: connections are cut and the log is replayed at start."""
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )


class Redis:
    """A redis-server that keeps nothing on disk."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it empty; return once it takes connections."""
        self._process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no"),
            ],
            cwd=self._directory,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < deadline, "redis-server does not start"
            time.sleep(0.02)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
