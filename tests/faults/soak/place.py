"""The environment of a soak, and the controls to break it: gateway, model server, databases, disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import psycopg

from tests.faults.soak.disk import Disk
from tests.support.live import ROOT, Command, fetch, manage, output_of
from tests.support.processes import children, workers_of
from tests.support.servers.own_servers import Postgresql, Redis, free_port
from tests.support.servers.tcp_proxy import FaultProxy
from tests.support.until import until

WORKERS: Final = 2
LEASE_SECONDS: Final = 20.0
"""Longer than any clock here is wrong."""
MODEL: Final = "acme/demo-8b"
_SECONDS: Final = 180.0
_FAKETIME: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
# Runs at the start of every process of the gateway. libfaketime sometimes makes a sleep fail
# (EINVAL), which no real clock does.
_SHIM = """
import errno, os, time
_sync, _sleep = os.fdatasync, time.sleep
def fdatasync(file):
    if os.path.exists(os.environ["SOAK_FAILING_SYNC"]):
        raise OSError(5, "Input/output error")
    _sync(file)
def sleep(seconds):
    try:
        _sleep(seconds)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
os.fdatasync, time.sleep = fdatasync, sleep
"""


@dataclass
class Place:
    """A gateway of two workers with its database, disk and clock.

    ``database``: its database behind a proxy, None on SQLite. ``clock``: a file with the seconds by
    which the gateway's clock is wrong, None where it is the host's.
    """

    directory: Path
    environment: dict[str, str]
    postgresql: Postgresql | None
    database: FaultProxy | None
    disk: Disk
    clock: Path | None
    port: int = field(default_factory=free_port)
    speech_port: int = field(default_factory=free_port)
    keys: dict[str, str] = field(default_factory=dict)
    """Secrets by scope."""
    gateway: Command | None = None

    @property
    def data(self) -> Path:
        return Path(self.environment["SVC_DATA_DIR"])

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    @property
    def failing_sync(self) -> Path:
        """While this file exists every ``fdatasync`` of the gateway fails."""
        return Path(self.environment["SOAK_FAILING_SYNC"])

    @property
    def chats_log(self) -> Path:
        """The model server's log of its chats, a JSON line each."""
        return self.directory / "chats.jsonl"

    def manage(self, *arguments: str) -> str:
        """Run a ``manage.py`` command without the proxy and with the right clock."""
        address = {"DATABASE_URL": self.postgresql.url} if self.postgresql else {}
        return output_of(manage(*arguments, **{**self.environment, **address}))

    def start_gateway(self) -> None:
        """Start it and return when every worker answers."""
        ports = ["--port", str(self.port), "--speech-port", str(self.speech_port)]
        environment = {**self.environment, "PYTHONPATH": str(self.directory / "shim")}
        if self.clock is not None:
            environment |= {
                "LD_PRELOAD": str(_FAKETIME),
                "FAKETIME_TIMESTAMP_FILE": str(self.clock),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            }
        command = ["serve", *ports, "--workers", str(WORKERS)]
        self.gateway = Command(command, environment, self.directory / "gateway.log")
        self.wait_for_workers()

    def wait_for_workers(self) -> None:
        """Return when every worker has written its metrics again."""
        now = time.time()
        try:
            until(lambda: sum(said >= now for said in self._said()) >= WORKERS, _SECONDS)
        except AssertionError:
            log = (self.directory / "gateway.log").read_text()
            raise RuntimeError(f"the gateway does not start: {log[-3000:]}") from None

    def _said(self) -> Iterator[float]:
        """When each worker last wrote its metrics for the others."""
        for path in (self.data / "workers").glob("*.json"):
            with suppress(FileNotFoundError):
                yield path.stat().st_mtime

    def figures(self, name: str) -> list[float]:
        """A metric of each worker; empty when the gateway does not answer."""
        with suppress(httpx2.HTTPError):
            text = fetch(f"http://127.0.0.1:{self.port}/metrics", timeout=5).text
            return [
                float(value)
                for value in re.findall(rf"^{name}\{{worker=\S+\}} (\S+)$", text, re.MULTILINE)
            ]
        return []

    def wait_for_no_admission(self) -> None:
        """Return when no request has only an admission in the database, at the latest after three
        minutes."""
        query = "SELECT count(*) FROM usage_admission WHERE closed_at IS NULL"
        with closing(self.connect()) as database, suppress(AssertionError):
            until(lambda: not database.execute(query).fetchone()[0], _SECONDS)

    @property
    def workers(self) -> list[int]:
        """The pids of the workers, oldest first."""
        assert self.gateway is not None
        return sorted(workers_of(self.gateway.process.pid))

    def kill_worker(self, pid: int | None = None) -> None:
        """Kill a worker, by default the youngest; its parent replaces it."""
        if workers := self.workers:
            os.kill(pid or workers[-1], signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill parent and children at once, as when a container ends."""
        assert self.gateway is not None
        with suppress(ProcessLookupError):
            # A suspended parent starts no worker that would be missed here.
            os.kill(self.gateway.process.pid, signal.SIGSTOP)
        for pid in children(self.gateway.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.gateway.kill()

    def connect(self) -> Any:
        """A direct connection to the database, in autocommit."""
        if self.postgresql is not None:
            return psycopg.connect(self.postgresql.url, autocommit=True)
        path = self.environment["DATABASE_URL"].removeprefix("sqlite:///")
        return sqlite3.connect(path, timeout=30, isolation_level=None)


@contextmanager
def place(database: str, *, clock: bool) -> Iterator[Place]:
    """Create everything and remove it; ``clock``: whether the gateway's clock can be set."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="svc-soak-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        disk = Disk(directory)
        stack.callback(disk.unmount)
        postgresql, proxy = None, None
        if database == "postgresql":
            postgresql = Postgresql(directory)
            stack.callback(_stop_quietly, postgresql)
            proxy = stack.enter_context(FaultProxy(postgresql.port))
        shared = Redis(directory)
        stack.callback(shared.kill)
        shared.start()
        found = Place(
            directory,
            _environment(directory, disk, postgresql, proxy, shared),
            postgresql,
            proxy,
            disk,
            _clock(directory) if clock else None,
        )
        stack.enter_context(_model_server(found))
        _fill(found)
        found.start_gateway()
        stack.callback(found.kill_all)
        yield found


def _environment(
    directory: Path,
    disk: Disk,
    postgresql: Postgresql | None,
    proxy: FaultProxy | None,
    shared: Redis,
) -> dict[str, str]:
    """The gateway's settings. On SQLite database and journal share the small disk, as they do by
    default."""
    (disk.path / "data").mkdir()
    (directory / "shim").mkdir()
    (directory / "shim" / "sitecustomize.py").write_text(_SHIM)
    address = f"sqlite:///{disk.path}/svc.sqlite3"
    if postgresql is not None and proxy is not None:
        address = postgresql.url_through(proxy.port)
    return {
        "SVC_DATA_DIR": str(disk.path / "data"),
        "DATABASE_URL": address,
        "REDIS_URL": shared.url,
        "SOAK_FAILING_SYNC": str(directory / "failing-sync"),
        "SVC_CHANGE_POLL_SECONDS": "0.5",
        "SVC_LIMIT_STORE_SECONDS": "2",
        "SVC_ADMISSION_LEASE_SECONDS": str(LEASE_SECONDS),
        "SECRET_KEY": "soak" * 16,
    }


def _clock(directory: Path) -> Path | None:
    if not _FAKETIME.exists():
        return None
    path = directory / "clock"
    path.write_text("+0")
    return path


@contextmanager
def _model_server(found: Place) -> Iterator[None]:
    port = free_port()
    arguments = ["simulate_backend", "--port", str(port), "--record", str(found.chats_log)]
    command = Command(arguments, found.environment, found.directory / "simulator.log")
    command.wait_for(f"127.0.0.1:{port}")
    catalog = (ROOT / "tests/catalog.toml").read_text().replace("PORT", str(port))
    (found.directory / "catalog.toml").write_text(catalog)
    try:
        yield
    finally:
        command.kill()


def _fill(found: Place) -> None:
    found.manage("migrate", "-v0")
    found.manage("load_catalog", str(found.directory / "catalog.toml"))
    unlimited = ("requests", "tokens", "speech-requests")
    limits = [part for name in unlimited for part in (f"--{name}-per-minute", "unlimited")]
    limits += ["--speech-characters-per-day", "unlimited"]
    found.manage("create_organization", "soak", *limits)
    for scope in ("inference", "speech"):
        made = found.manage("create_key", "soak", "--scope", scope, "--json")
        found.keys[scope] = json.loads(made)["key"]


def _stop_quietly(postgresql: Postgresql) -> None:
    with suppress(subprocess.CalledProcessError):
        postgresql.stop()
