"""Gateway processes of the live database: the one of a test worker, and others beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.live import ROOT, Command, Gateway, Simulator, free_port

IMPATIENT = {
    "SVC_HEAD_SECONDS": "0.5",
    "SVC_BODY_SECONDS": "0.5",
    "SVC_CLIENT_STALL_SECONDS": "0.5",
}
"""Settings under which clients that send or read too slowly are soon given up."""
WITHOUT_DATABASE = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing"}


@dataclass
class Served:
    """The gateway process of this test worker."""

    command: Command
    port: int
    speech_port: int
    environment: dict[str, str]
    database_name: str
    simulator: Simulator

    def serving(self, gateway: Gateway) -> Gateway:
        """The organization of ``gateway`` on this process."""
        return replace(gateway, command=self.command, port=self.port, speech_port=self.speech_port)


@contextmanager
def postgresql_database(name: str) -> Iterator[str]:
    """An empty database beside the one of ``DATABASE_URL``; its address."""
    address = os.environ["DATABASE_URL"]
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield address.rsplit("/", 1)[0] + f"/{name}"
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def launch(
    environment: dict[str, str], log: Path, *arguments: str, checkout: Path = ROOT
) -> tuple[Command, int, int]:
    """Start ``manage.py serve``; return it and the ports of both surfaces, once it takes connections.

    ``checkout`` is the directory of the code.
    """
    port, speech_port = free_port(), free_port()
    command = Command(
        ["serve", "--port", str(port), "--speech-port", str(speech_port), *arguments],
        environment,
        log,
        checkout=checkout,
    )
    try:
        command.wait_for(f"127.0.0.1:{port}")
    except BaseException:
        command.kill()
        raise
    return command, port, speech_port


@contextmanager
def another_gateway(served: Served, directory: Path, **environment: str) -> Iterator[Served]:
    """Start a gateway besides ``served`` for a whole module, on the same database."""
    started = _started(served, directory, environment)
    yield started
    started.command.kill()


def _started(served: Served, directory: Path, environment: dict[str, str]) -> Served:
    settings = {**served.environment, "SVC_DATA_DIR": str(directory), **environment}
    command, port, speech_port = launch(settings, directory / "gateway.log")
    return replace(
        served, command=command, port=port, speech_port=speech_port, environment=settings
    )


class SharedGateways:
    """A gateway besides ``served`` with the settings that tests of this worker ask for.

    Each takes about 200 MB and many connections to the database, of which PostgreSQL has 100 by
    default. So only the last one runs.
    """

    def __init__(self, served: Served, directory: Path) -> None:
        self._served = served
        self._directory = directory
        self._settings: dict[str, str] = {}
        self._running: Served | None = None
        self._count = 0

    def with_settings(self, **environment: str) -> Served:
        """Return the gateway with these settings; it is started unless it runs."""
        found = self._running
        if found and environment == self._settings and found.command.process.poll() is None:
            return found
        self.close()
        self._count += 1
        directory = self._directory / f"shared-{self._count}"
        directory.mkdir(exist_ok=True)
        self._settings = environment
        self._running = _started(self._served, directory, environment)
        return self._running

    def close(self) -> None:
        if self._running is not None:
            self._running.command.kill()
