"""svc configured as in production: a database, a catalog, an organization with limits, a key."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks.payloads import Pace
from benchmarks.processes import ROOT, Server, free_port

# Too high to be reached, but set, so that every request reserves and settles.
_LIMIT = "1000000000"
_MANAGE_ALL = """
import json, sys
import django
from django.core.management import call_command
django.setup()
for command in json.load(sys.stdin):
    call_command(*command)
"""
_COUNT = "SELECT count(*) FROM usage_usagerow"


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway; ``database`` is its ``DATABASE_URL``, and each organization has one of ``keys``."""

    server: Server
    keys: tuple[str, ...]
    database: str

    @property
    def key(self) -> str:
        return self.keys[0]

    def rows(self) -> int:
        """The number of rows in the ledger."""
        if self.database.startswith("sqlite:///"):
            with closing(sqlite3.connect(self.database.removeprefix("sqlite:///"))) as database:
                return int(database.execute(_COUNT).fetchone()[0])
        with psycopg.connect(self.database) as connection:
            row = connection.execute(_COUNT).fetchone()
            assert row is not None
            return int(row[0])


@dataclass(frozen=True, slots=True)
class Serving:
    """How a gateway is run: the checkout ``root``, by ``runserver`` (``development``) or by ``serve``.

    More than one of ``workers`` needs the address of a ``redis``, which then has the limits.
    ``python`` is the interpreter of the server; commands before it run in this one.
    """

    root: Path = ROOT
    development: bool = False
    workers: int = 1
    redis: str = ""
    python: str = sys.executable


@contextmanager
def gateway(
    directory: Path,
    database: str,
    catalog_text: str,
    serving: Serving | None = None,
    organizations: Sequence[str] = ("bench",),
) -> Iterator[Gateway]:
    """Run a gateway on an empty ``database``, with ``catalog_text`` as its catalog.

    ``directory`` holds its data directory, catalog and log. Each of ``organizations`` has a key and limits.
    """
    serving = serving or Serving()
    root = serving.root
    port, speech_port = free_port(), free_port()
    environment = {
        "DATABASE_URL": database,
        "SVC_DATA_DIR": str(directory),
        "LOG_LEVEL": "WARNING",
        "DEBUG": "false",
        "REDIS_URL": serving.redis,
        # One organization sends everything here, and may hold a quarter of it.
        "SVC_MAX_INFLIGHT": "4000",
        "SVC_MAX_ARRIVING": "4000",  # a setting of older checkouts
    }
    catalog = directory / "catalog.toml"
    catalog.write_text(catalog_text)
    limits = ("--requests-per-minute", _LIMIT, "--tokens-per-minute", _LIMIT)
    made = manage_all(
        environment,
        [
            ("migrate", "-v0"),
            ("load_catalog", str(catalog)),
            *(("create_organization", each, "--json", *limits) for each in organizations),
            *(("create_key", each, "--scope", "inference", "--json") for each in organizations),
        ],
        root,
    )
    command = ["serve", "--port", str(port), "--speech-port", str(speech_port)]
    command += ["--workers", str(serving.workers)]
    if serving.development:
        command = ["runserver", "--noreload", f"127.0.0.1:{port}"]
    server = Server(
        ["manage.py", *command],
        port,
        directory / "gateway.log",
        environment,
        root,
        program=serving.python,
    )
    try:
        keys = made.splitlines()[-len(organizations) :]
        yield Gateway(server, tuple(json.loads(each)["key"] for each in keys), database)
    finally:
        server.stop()


@contextmanager
def postgresql(address: str, suffix: str = "") -> Iterator[str]:
    """Create an empty database on the server at ``address``; yield its address; drop it at the end.

    ``suffix`` tells several databases of one run apart.
    """
    database = f"svc_bench_{os.getpid()}{suffix}"
    name = sql.Identifier(database)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    try:
        yield f"{address.rpartition('/')[0]}/{database}"
    finally:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def manage_all(
    environment: Mapping[str, str], commands: Sequence[Sequence[str]], root: Path = ROOT
) -> str:
    """Run management commands in one process, which starts once; return their output.

    Raises ``CalledProcessError``.
    """
    done = subprocess.run(
        [sys.executable, "-c", _MANAGE_ALL],
        cwd=root,
        env={**os.environ, **environment, "DJANGO_SETTINGS_MODULE": "svc_project.settings"},
        input=json.dumps(commands),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def manage(environment: dict[str, str], *arguments: str, root: Path = ROOT) -> str:
    """Run a management command; return its output. Raises ``CalledProcessError``."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=root,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def stub_catalog(backend_port: int) -> str:
    """The catalog of a gateway in front of the stub: a model for each pace of a stream."""
    backend = f"""
[[backends]]
name = "stub"
base_url = "http://127.0.0.1:{backend_port}/v1"
max_concurrency = 4000
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
