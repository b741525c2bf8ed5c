"""A gateway with a model simulator behind it, to be attacked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import psycopg
from django.core.management import call_command
from django.db import connection

from tests.resilience.measuring.processes import pids_of_workers
from tests.resilience.target import Target, Tenant
from tests.support.live import ROOT, START_SECONDS, Command, fetch, free_port
from tests.support.processes import page_process_of
from tests.support.servers.database_outage import another_session
from tests.support.until import until

_CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_STOP_SECONDS = 90.0
_LATENCY_SECONDS = "0.02"
"""Seconds until the first token."""


@dataclass(frozen=True, slots=True)
class Place:
    """A running gateway."""

    port: int
    speech_port: int
    workers: Sequence[int]
    """Its worker processes."""

    pages: int | None = None
    """Its page process; None with one worker."""

    observer: psycopg.Connection | None = None
    """The suite's own connection to the gateway's PostgreSQL."""

    def database_connections(self) -> int:
        """The connections to the gateway's database without the suite's own; 0 on SQLite."""
        if self.observer is None:
            return 0
        found = self.observer.execute(_CONNECTIONS).fetchone()
        assert found is not None
        return int(found[0])

    def target(self, tenant: Tenant) -> Target:
        return Target(self.port, self.speech_port, tenant)


@contextmanager
def gateway(directory: Path, workers: int) -> Iterator[Place]:
    """Make the database of this process's settings, and serve it with a model simulator behind."""
    model_port = free_port()
    simulator = Command(
        [
            *("simulate_backend", "--port", str(model_port)),
            *("--first-token-delay", _LATENCY_SECONDS),
        ],
        {},
        directory / "simulator.log",
    )
    try:
        call_command("migrate", verbosity=0)
        catalog = directory / "catalog.toml"
        text = (ROOT / "tests/catalog.toml").read_text()
        catalog.write_text(text.replace("PORT", str(model_port)))
        call_command("load_catalog", str(catalog), stdout=StringIO())
        simulator.wait_for(f"127.0.0.1:{model_port}")
        with served(directory, workers, {}) as place:
            yield place
    finally:
        simulator.kill()


@contextmanager
def served(directory: Path, workers: int, environment: dict[str, str]) -> Iterator[Place]:
    """Start a gateway on a database that is ready, which is Django's default here too."""
    port, speech_port = free_port(), free_port()
    ports = ["--port", str(port), "--speech-port", str(speech_port)]
    command = Command(
        ["serve", *ports, "--workers", str(workers)], environment, directory / "gateway.log"
    )
    with ExitStack() as stack:
        stack.callback(command.stop, _STOP_SECONDS)
        observer = None
        if connection.vendor == "postgresql":
            observer = stack.enter_context(another_session(autocommit=True))
        command.wait_for(f"127.0.0.1:{port}")
        until(lambda: _ready_workers(port) == workers, START_SECONDS)
        pid = command.process.pid
        pages = until(lambda: page_process_of(pid), START_SECONDS) if workers > 1 else None
        yield Place(port, speech_port, pids_of_workers(pid, workers), pages, observer)


def _ready_workers(port: int) -> int:
    figures = fetch(f"http://127.0.0.1:{port}/metrics", timeout=START_SECONDS).text
    return len(re.findall(r"^svc_ready\{.*\} 1\.0$", figures, re.MULTILINE))
