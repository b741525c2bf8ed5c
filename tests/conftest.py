"""Fixtures of the whole suite.

``gateway`` is a real server process with the simulator behind it, started once per test worker on
a database of its own; each test gets an organization and a key of its own in it. ``gateway_with``
gives one with other settings, which tests share too, and ``start_gateway`` one of the test's own.
Tests marked ``django_db`` use pytest-django's database instead.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.core.management import call_command

import svc_project.urls  # noqa: F401  # registers the admin's pages
from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.gateways import Served, SharedGateways, launch, postgresql_database
from tests.support.live import ROOT, Command, Gateway, Simulator, database, free_port

pytest_plugins = [
    "tests.support.management",
    "tests.support.readers",
    "tests.support.servers.redis_store",
    "tests.support.speech.fixtures",
]

# The duration of an example depends more on the machine than on the code. CI tries the same
# examples every time, so that its result does not depend on luck; developers' machines try new ones.
hypothesis.settings.register_profile(
    "desk", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile(
    "ci", hypothesis.settings.get_profile("desk"), derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_configure() -> None:
    """Spend no time on hashing passwords, and keep no connection to a database that a test drops.

    Gateways of their own process do both as in production.
    """
    settings.PASSWORD_HASHERS = ["tests.support.quick_hasher.QuickHasher"]
    settings.DATABASES["default"]["CONN_MAX_AGE"] = 0


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
    name = f"svc_live_{os.getpid()}_{worker_id}"
    with postgresql_database(name) as address:
        yield address, name


@pytest.fixture(scope="session")
def served(
    worker_directory: Path,
    simulator: Simulator,
    live_database: tuple[str, str],
    django_db_blocker: Any,
) -> Iterator[Served]:
    """The gateway process; use ``gateway`` in tests."""
    address, name = live_database
    environment = {
        "DATABASE_URL": address,
        "SVC_DATA_DIR": str(worker_directory),
        "SVC_KEY_PEPPERS": ",".join(settings.SVC_KEY_PEPPERS),
        "SVC_CAPTURE_KEYS": ",".join(settings.SVC_CAPTURE_KEYS),
        "SVC_CLONE_KEYS": ",".join(settings.SVC_CLONE_KEYS),
        "SECRET_KEY": settings.SECRET_KEY,
        "EMAIL_URL": f"filemail:///{worker_directory / 'mail'}",
        "SVC_SAMPLED_FRACTION": "0.2",
        # Long enough for a busy machine; tests of timeouts give their backends shorter ones.
        "SVC_BACKEND_CONNECT_SECONDS": "10",
        "SVC_BACKEND_FIRST_BYTE_SECONDS": "30",
        "SVC_BACKEND_IDLE_SECONDS": "30",
        "SVC_DISCONNECT_DRAIN_SECONDS": "5",
        # Tests send far more refused requests than real callers.
        "SVC_REFUSED_REQUESTS_PER_MINUTE": "1000",
    }
    catalog = worker_directory / "catalog.toml"
    catalog.write_text(
        (ROOT / "tests/catalog.toml").read_text().replace("PORT", str(simulator.port))
    )
    with django_db_blocker.unblock(), database(name), redirect_stdout(StringIO()):
        call_command("migrate", verbosity=0)
        call_command("load_catalog", str(catalog))
    command, port, speech_port = launch(environment, worker_directory / "gateway.log")
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


@pytest.fixture(scope="session")
def shared_gateways(served: Served, worker_directory: Path) -> Iterator[SharedGateways]:
    """The processes behind ``gateway_with``."""
    shared = SharedGateways(served, worker_directory)
    yield shared
    shared.close()


@pytest.fixture
def gateway_with(shared_gateways: SharedGateways, gateway: Gateway) -> Callable[..., Gateway]:
    """Give a gateway with the settings that the arguments name, for the test's own organization.

    Tests that ask for the same settings share the process, so none may stop, starve or fill it, or
    count what other tests change: such tests use ``start_gateway``.
    """

    def find(**environment: str) -> Gateway:
        found = shared_gateways.with_settings(**environment)
        return replace(
            gateway, port=found.port, speech_port=found.speech_port, command=found.command
        )

    return find


@pytest.fixture
def start_gateway(
    served: Served, gateway: Gateway, tmp_path: Path
) -> Iterator[Callable[..., Gateway]]:
    """Start gateways besides ``served``, on the same database, to be starved, stopped or killed.

    The arguments are settings by name; ``SVC_DATA_DIR`` is the test's own directory.
    """
    started: list[Command] = []

    def start(**environment: str) -> Gateway:
        command, port, speech_port = launch(
            {**served.environment, "SVC_DATA_DIR": str(tmp_path), **environment},
            tmp_path / "gateway.log",
        )
        started.append(command)
        return replace(gateway, port=port, speech_port=speech_port, command=command)

    yield start
    for command in started:
        command.kill()


_SLOW = (
    "tests/accounts/admin/test_rights.py",
    "tests/accounts/keys/test_key_upgrade.py",
    "tests/accounts/keys/test_keyring",
    "tests/accounts/login/",
    "tests/fuzz/",
    "tests/house/test_expressions.py",
    "tests/inference/admin/",
    "tests/inference/backends/test_connections.py",
    "tests/inference/probe/",
    "tests/inference/wire/test_reading_bounds.py",
    "tests/real/",
    "tests/resilience/",
    "tests/simulators/",
    "tests/speech/admin/",
    "tests/speech/audio/test_encoding.py",
    "tests/speech/audio/test_speaker.py",
    "tests/speech/engines/espeak/",
    "tests/speech/engines/http/",
    "tests/speech/engines/kokoro/test_engine.py",
    "tests/speech/engines/kokoro/test_text.py",
    "tests/speech/voices/clones/",
    "tests/svc_project/admin/",
    "tests/svc_project/gate/",
    "tests/core/http_client/test_connecting.py",
    "tests/core/http_client/test_connections.py",
    "tests/core/http_client/test_real_servers.py",
    "tests/core/limits/test_buckets.py",
    "tests/svc_project/management/",
    "tests/svc_project/serving/",
    "tests/svc_project/test_",
    "tests/usage/admin/",
    "tests/usage/ledger/test_adoption.py",
    "tests/usage/ledger/test_journal_fallback.py",
    "tests/usage/ledger/test_ledger.py",
    "tests/usage/ledger/test_locks.py",
    "tests/usage/ledger/test_stops.py",
    "tests/usage/ledger/test_withheld_answers.py",
    "tests/usage/retention/test_prune.py",
    "tests/usage/verification/test_rebuild_rollups.py",
)
"""Files that take a second a test or more: engines, hostile servers, timers, rendered admin pages."""
_LIVE_FIXTURES = frozenset({"simulator", "live_database", "served"})


def _marks_of_folders(item: pytest.Item) -> Iterator[pytest.MarkDecorator]:
    """Yield the ``pytestmark`` of each package that the test is in, which marks all its tests."""
    package = getattr(item, "module", pytest).__name__
    while package := package.rpartition(".")[0]:
        mark = getattr(sys.modules.get(package), "pytestmark", None)
        if mark is not None:
            yield mark


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark live and slow tests and those of marked folders; deselect those of the other database.

    Tests marked ``redis`` are skipped without one. Tests marked ``last`` run when the other test
    workers have little left to do.
    """
    without_redis = pytest.mark.skip(
        reason="SVC_TEST_REDIS_URL is not set: limits shared by workers are not tested"
    )
    for item in items:
        for mark in _marks_of_folders(item):
            item.add_marker(mark)
        if not os.environ.get("SVC_TEST_REDIS_URL") and item.get_closest_marker("redis"):
            item.add_marker(without_redis)
        if _LIVE_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("live")
        if item.nodeid.startswith(_SLOW):
            item.add_marker("slow")
    on_sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    other = "postgresql" if on_sqlite else "sqlite"
    kept = [item for item in items if item.get_closest_marker(other) is None]
    config.hook.pytest_deselected(
        items=[item for item in items if item.get_closest_marker(other) is not None]
    )
    items[:] = sorted(kept, key=lambda item: item.get_closest_marker("last") is not None)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run for skipped tests where everything is installed (``.ci/run``)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("SVC_TEST_FAIL_ON_SKIP") and reporter and reporter.stats.get("skipped"):
        reporter.write_line("SVC_TEST_FAIL_ON_SKIP is set and tests were skipped.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
