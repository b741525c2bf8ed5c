"""The servers under a gateway of a soak: a PostgreSQL cluster, Redis, a small disk of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psycopg
import redis

from tests.live import free_port

_DISK_BYTES: Final = 1 << 30
_SECONDS: Final = 30.0


class Postgresql:
    """A cluster that this run makes by ``initdb``; as root its commands run as ``postgres``."""

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
        self.start()

    @property
    def url(self) -> str:
        return self.url_through(self.port)

    def url_through(self, port: int) -> str:
        return f"postgres://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
        log = str(self._data / "log")
        self._run("pg_ctl", "-D", str(self._data), "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        """Stop at once, as a crash does: connections are cut and the log is replayed at start."""
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def connections(self) -> int:
        """How many clients are connected; 0 when the server does not answer."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(self.url, connect_timeout=5) as own,
        ):
            return int(own.execute(query).fetchone()[0]) - 1  # type: ignore[index]  # one row
        return 0

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )


class Redis:
    """A server without persistence, for the limits that two workers share."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            cwd=directory,
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _SECONDS
        with redis.Redis(port=self.port) as client:
            while time.monotonic() < deadline:
                with suppress(redis.ConnectionError):
                    client.ping()
                    return
                time.sleep(0.05)
        raise RuntimeError("redis-server does not answer")

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Disk:
    """A file system of 1 GiB in a file, mounted at ``path``. Needs root."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "disk"
        self.path.mkdir()
        image = directory / "disk.img"
        with image.open("wb") as file:
            file.truncate(_DISK_BYTES)
        _quietly("mkfs.ext4", "-q", "-m", "0", str(image))
        _quietly("mount", "-o", "loop", str(image), str(self.path))
        self._ballast = self.path / "ballast"

    def fill(self) -> None:
        """Leave no free byte."""
        size = 1 << 20
        with self._ballast.open("ab", buffering=0) as file:
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        _quietly("umount", "--lazy", str(self.path))


def make_immutable(directory: Path, *, immutable: bool) -> None:
    """Let no file be made in ``directory`` or removed from it, by root either (chattr(1))."""
    _quietly("chattr", "+i" if immutable else "-i", str(directory))


def _quietly(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
