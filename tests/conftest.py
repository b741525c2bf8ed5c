"""Fixtures of the whole suite.

``gateway`` is a real server process with the simulator behind it, started once per test worker on
a database of its own; each test gets an organization and a key of its own in it. Tests marked
``django_db`` use pytest-django's database instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from accounts.keys import mint
from accounts.models import Organization, Scope
from tests.live import ROOT, Command, Gateway, Simulator, database, free_port

# How long an example takes says more about the machine than about the code. CI tries the same
# examples every time, so that what lands does not depend on luck; new ones are found at the desk.
hypothesis.settings.register_profile(
    "desk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("desk"), derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")


@dataclass
class Served:
    """The gateway process of this test worker."""

    command: Command
    port: int
    speech_port: int
    environment: dict[str, str]
    database_name: str
    simulator: Simulator


@pytest.fixture(scope="session")
def worker_directory(worker_id: str) -> Path:
    directory = Path(settings.SVC_DATA_DIR) / f"live-{worker_id}"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def simulator(worker_directory: Path) -> Iterator[Simulator]:
    """A running model simulator with real token counts."""
    port = free_port()
    command = Command(
        ["simulate_backend", "--port", str(port)], {}, worker_directory / "simulator.log"
    )
    command.wait_for(f"127.0.0.1:{port}")
    yield Simulator(command, port)
    command.stop()


@pytest.fixture(scope="session")
def live_database(worker_directory: Path, worker_id: str) -> Iterator[tuple[str, str]]:
    """The address and the name of an empty database for the live gateway."""
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        path = worker_directory / "live.sqlite3"
        for left in worker_directory.glob("live.sqlite3*"):
            left.unlink()
        yield f"sqlite:///{path}", str(path)
        return
    address = os.environ["DATABASE_URL"]
    name = f"svc_live_{os.getpid()}_{worker_id}"
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield address.rsplit("/", 1)[0] + f"/{name}", name
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def served(
    worker_directory: Path, simulator: Simulator, live_database: tuple[str, str]
) -> Iterator[Served]:
    """The gateway process; use ``gateway`` in tests."""
    address, name = live_database
    port, speech_port = free_port(), free_port()
    environment = {
        "DATABASE_URL": address,
        "SVC_DATA_DIR": str(worker_directory),
        "SVC_KEY_PEPPERS": ",".join(settings.SVC_KEY_PEPPERS),
        "SVC_CAPTURE_KEYS": ",".join(settings.SVC_CAPTURE_KEYS),
        "SVC_CLONE_KEYS": ",".join(settings.SVC_CLONE_KEYS),
        "SECRET_KEY": settings.SECRET_KEY,
        "SVC_SAMPLED_FRACTION": "0.2",
        "SVC_BACKEND_CONNECT_SECONDS": "1",
        "SVC_BACKEND_FIRST_BYTE_SECONDS": "2",
        "SVC_BACKEND_IDLE_SECONDS": "2",
        "SVC_DISCONNECT_DRAIN_SECONDS": "5",
        # Tests send far more requests that are refused than people do.
        "SVC_REFUSED_REQUESTS_PER_MINUTE": "1000",
    }
    catalog = worker_directory / "catalog.toml"
    catalog.write_text(
        (ROOT / "tests/catalog.toml").read_text().replace("PORT", str(simulator.port))
    )
    for arguments in (["migrate", "-v0"], ["load_catalog", str(catalog)]):
        subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**os.environ, **environment},
            check=True,
            stdout=subprocess.DEVNULL,
        )
    command = Command(
        ["serve", "--port", str(port), "--speech-port", str(speech_port)],
        environment,
        worker_directory / "gateway.log",
    )
    command.wait_for(f"127.0.0.1:{port}")
    yield Served(command, port, speech_port, environment, name, simulator)
    command.stop()


@pytest.fixture
def gateway(served: Served, django_db_blocker: Any) -> Iterator[Gateway]:
    """The live gateway, with an organization without limits and an inference key."""
    with django_db_blocker.unblock(), database(served.database_name):
        organization = Organization.objects.create(
            name=f"test {uuid.uuid4()}", requests_per_minute=None, tokens_per_minute=None
        )
        minted = mint(organization, Scope.INFERENCE, "test")
        yield Gateway(
            port=served.port,
            speech_port=served.speech_port,
            command=served.command,
            organization=organization,
            api_key=minted.api_key,
            key=minted.secret,
            simulator=served.simulator,
        )


@contextmanager
def another_gateway(served: Served, directory: Path, **environment: str) -> Iterator[Served]:
    """A gateway besides ``served`` for a whole module, on the same database."""
    port, speech_port = free_port(), free_port()
    settings_of_it = {**served.environment, "SVC_DATA_DIR": str(directory), **environment}
    command = Command(
        ["serve", "--port", str(port), "--speech-port", str(speech_port)],
        settings_of_it,
        directory / "gateway.log",
    )
    command.wait_for(f"127.0.0.1:{port}")
    yield replace(
        served, command=command, port=port, speech_port=speech_port, environment=settings_of_it
    )
    command.kill()


@pytest.fixture
def start_gateway(
    served: Served, gateway: Gateway, tmp_path: Path
) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways besides ``served``, on the same database, to be starved, stopped or killed.

    The arguments are settings by name; ``SVC_DATA_DIR`` is a directory of the test's own.
    """
    started: list[Command] = []

    def start(**environment: str) -> Gateway:
        port, speech_port = free_port(), free_port()
        command = Command(
            ["serve", "--port", str(port), "--speech-port", str(speech_port)],
            {**served.environment, "SVC_DATA_DIR": str(tmp_path), **environment},
            tmp_path / "gateway.log",
        )
        started.append(command)
        command.wait_for(f"127.0.0.1:{port}")
        return replace(gateway, port=port, speech_port=speech_port, command=command)

    yield start
    for command in started:
        command.kill()


_ALIKE_ON_EVERY_DATABASE = (
    "tests/browser/",
    "tests/clients/",
    "tests/faults/test_dialects.py",
    "tests/fuzz/",
    "tests/house/",
    "tests/lib/",
    "tests/real/",
    "tests/spec/",
    "tests/server/test_page_headers.py",
    "tests/server/test_smuggling.py",
    "tests/speech/test_espeak",
    "tests/speech/test_http_engine",
    "tests/speech/test_kokoro",
    "tests/speech/test_pauses.py",
    "tests/speech/test_piper_server.py",
    "tests/speech/test_session_length.py",
    "tests/speech/test_session_stalls.py",
    "tests/speech/test_speech_http.py",
    "tests/speech/test_speed.py",
    "tests/speech/test_websocket",
)
"""What asks about sockets, sound, clients or wire shapes and writes rows only by the way."""
_DATABASE_FIXTURES = frozenset({"db", "transactional_db", "live_database", "postgresql"})


def _touches_a_database(item: pytest.Item) -> bool:
    if item.nodeid.startswith(_ALIKE_ON_EVERY_DATABASE):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return item.get_closest_marker("django_db") is not None or bool(fixtures & _DATABASE_FIXTURES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the other database: they run when the suite runs on it.

    On PostgreSQL only what touches a database is repeated.
    """
    on_sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")

    def runs_here(item: pytest.Item) -> bool:
        if on_sqlite:
            return item.get_closest_marker("postgresql") is None
        if item.get_closest_marker("postgresql") is not None:
            return True
        return item.get_closest_marker("sqlite") is None and _touches_a_database(item)

    kept = [item for item in items if runs_here(item)]
    config.hook.pytest_deselected(items=[item for item in items if not runs_here(item)])
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything is installed (``.ci/run``), a skipped test is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SVC_TEST_FAIL_ON_SKIP") and reporter and reporter.stats.get("skipped"):
        reporter.write_line("SVC_TEST_FAIL_ON_SKIP is set and tests were skipped.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
