"""A gateway of its own for the suites: one worker, SQLite, and model servers behind it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.conformance.model_server import scripted_model_server
from tests.support.gateways import launch
from tests.support.live import ROOT, Command
from tests.support.servers.own_servers import free_port

MODEL: Final = "acme/demo-8b"
VOICE: Final = "ash"
_NAME: Final = "conformance"


@dataclass(frozen=True)
class Place:
    """A running gateway, an organization without limits, and its keys."""

    directory: Path
    port: int
    speech_port: int
    simulator_port: int
    key: str
    speech_key: str

    @property
    def base_url(self) -> str:
        """The address of the inference surface, with ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def speech_url(self) -> str:
        """The address of the speech surface, with ``/v1``."""
        return f"http://127.0.0.1:{self.speech_port}/v1"


@contextmanager
def place() -> Iterator[Place]:
    """Start everything in a directory of its own, and remove it at the end."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="svc-conformance-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        environment = {
            "DATABASE_URL": f"sqlite:///{directory / 'svc.sqlite3'}",
            "SVC_DATA_DIR": str(directory),
            "SECRET_KEY": _NAME * 8,
            # Suites send many requests that have to be refused.
            "SVC_REFUSED_REQUESTS_PER_MINUTE": "unlimited",
        }
        simulator_port = free_port()
        simulator = Command(
            ["simulate_backend", "--port", str(simulator_port)],
            environment,
            directory / "simulator.log",
        )
        stack.callback(simulator.kill)
        simulator.wait_for(f"127.0.0.1:{simulator_port}")
        scripted_port = stack.enter_context(scripted_model_server(simulator_port))
        keys = _fill(directory, environment, simulator_port, scripted_port)
        gateway, port, speech_port = launch(environment, directory / "gateway.log")
        stack.callback(gateway.stop)
        yield Place(directory, port, speech_port, simulator_port, keys["inference"], keys["speech"])


def _fill(
    directory: Path, environment: dict[str, str], simulator_port: int, scripted_port: int
) -> dict[str, str]:
    """Create the tables, the catalog, an organization and its keys; return the keys by scope."""

    def manage(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    catalog = (Path(__file__).parent / "catalog.toml").read_text()
    catalog = catalog.replace("PORT", str(simulator_port)).replace("SCRIPTED", str(scripted_port))
    (directory / "catalog.toml").write_text(catalog)
    manage("migrate", "-v0")
    manage("load_catalog", str(directory / "catalog.toml"))
    limits = ("requests", "tokens", "speech-requests")
    unlimited = [part for name in limits for part in (f"--{name}-per-minute", "unlimited")]
    manage("create_organization", _NAME, *unlimited, "--speech-characters-per-day", "unlimited")
    return {
        scope: json.loads(manage("create_key", _NAME, "--scope", scope, "--json"))["key"]
        for scope in ("inference", "speech")
    }
