"""svc as an operator would set it up: a database, a catalog, an organization with limits, a key."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.payloads import Pace
from benchmarks.processes import ROOT, Server, free_port

# High enough never to be reached, set so that every request reserves and settles.
_LIMIT = "1000000000"
_COUNT = "SELECT count(*) FROM usage_usagerow"


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway with one worker; ``database`` is its address as Django takes it."""

    server: Server
    key: str
    database: str

    def rows(self) -> int:
        """How many rows the ledger has."""
        if self.database.startswith("sqlite:///"):
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:///"))) as database:
                return int(database.execute(_COUNT).fetchone()[0])
        with psycopg.connect(self.database) as connection:
            row = connection.execute(_COUNT).fetchone()
            assert row is not None
            return int(row[0])


@contextmanager
def gateway(directory: Path, database: str, backend_port: int) -> Iterator[Gateway]:
    """A gateway on an empty ``database``, in front of the stub.

    ``directory`` takes its data directory, catalog and log.
    """
    port, speech_port = free_port(), free_port()
    environment = {
        "DATABASE_URL": database,
        "SVC_DATA_DIR": str(directory),
        "LOG_LEVEL": "WARNING",
        "DEBUG": "false",
    }
    catalog = directory / "catalog.toml"
    catalog.write_text(_catalog(backend_port))
    manage(environment, "migrate", "-v0")
    manage(environment, "load_catalog", str(catalog))
    manage(
        environment,
        *("create_organization", "bench", "--json"),
        *("--requests-per-minute", _LIMIT, "--tokens-per-minute", _LIMIT),
    )
    made = manage(environment, "create_key", "bench", "--scope", "inference", "--json")
    server = Server(
        ["manage.py", "serve", "--port", str(port), "--speech-port", str(speech_port)],
        port,
        directory / "gateway.log",
        environment,
    )
    try:
        yield Gateway(server, json.loads(made)["key"], database)
    finally:
        server.stop()


@contextmanager
def postgresql(address: str) -> Iterator[str]:
    """The address of an empty database on the server at ``address``, dropped at the end."""
    name = sql.Identifier(f"svc_bench_{os.getpid()}")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    try:
        yield f"{address.rpartition('/')[0]}/svc_bench_{os.getpid()}"
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def manage(environment: dict[str, str], *arguments: str) -> str:
    """What a management command printed. Raises ``CalledProcessError``."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _catalog(backend_port: int) -> str:
    backend = f"""
[[backends]]
name = "stub"
base_url = "http://127.0.0.1:{backend_port}/v1"
max_concurrency = 2000
running_usage = "vllm"
"""
    return backend + "".join(
        f"""
[[models]]
id = "bench/{pace}"
weights = "bench/{pace}@1"
backends = [{{ name = "stub", model = "{pace}" }}]
context_length = 32768
max_request_bytes = 1048576
default_max_output_tokens = 2048
tool_calling = true
structured_output = true
published = true
pricing = {{ input_per_mtok = "0.15", output_per_mtok = "0.60", currency = "USD" }}
"""
        for pace in Pace
    )
