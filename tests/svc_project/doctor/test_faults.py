"""``svc doctor`` on installations with real faults: one line each, what to do, and the exit status."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pytest_django.fixtures import Settings

from svc_project.doctor import servers
from svc_project.doctor.disk import open_files
from svc_project.doctor.findings import Finding, State
from svc_project.serving import state_file
from tests.support.live import ROOT, Ran, free_port
from tests.support.live import run as run_program
from tests.support.servers.pgbouncer import running_pgbouncer
from tests.support.servers.redis_store import REDIS_URL

SECRETS = (
    *("SECRET_KEY", "SVC_KEY_PEPPERS", "SVC_CAPTURE_KEYS", "SVC_CLONE_KEYS", "SVC_METRICS_TOKEN"),
)
PASSWORD = "geheim-passwort"
LIMITED = (
    "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
    "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
"""Runs a program that may not write a file of more than 1000 bytes, as on a disk that is full."""
FEW_FILES = LIMITED.replace("RLIMIT_FSIZE, (1000, 1000)", "RLIMIT_NOFILE, (300, 300)")


def environment(directory: Path) -> dict[str, str]:
    """The settings of an installation without a fault."""
    return {
        **{name: value for name, value in os.environ.items() if name != "REDIS_URL"},
        **{name: secrets.token_urlsafe(48) for name in SECRETS},
        "SVC_DATA_DIR": str(directory / "data"),
        "DATABASE_URL": f"sqlite:///{directory}/svc.sqlite3",
        "SVC_HTTPS_ONLY": "true",
        "SVC_PROXIES": "1",
        "ALLOWED_HOSTS": "ai.example.com",
        "SVC_PUBLIC_URL": "https://ai.example.com",
    }


def run(*arguments: str, env: dict[str, str], program: tuple[str, ...] = ()) -> Ran:
    return run_program(sys.executable, *program, ROOT / "manage.py", *arguments, env=env)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated database, to be copied."""
    directory = tmp_path_factory.mktemp("migrated")
    made = run("migrate", "--verbosity=0", env=environment(directory))
    assert made.returncode == 0, made.stderr
    return directory / "svc.sqlite3"


@pytest.fixture
def installed(tmp_path: Path, migrated: Path) -> dict[str, str]:
    """The settings of an installation without a fault."""
    shutil.copy(migrated, tmp_path / "svc.sqlite3")
    return environment(tmp_path)


def change_migrations(env: dict[str, str], statement: str) -> None:
    with sqlite3.connect(env["DATABASE_URL"].removeprefix("sqlite:///")) as database:
        database.execute(statement)


FORGET_ONE = "DELETE FROM django_migrations WHERE name = '0008_admissions'"
KNOW_ANOTHER = (
    "INSERT INTO django_migrations (app, name, applied) VALUES ('usage', '0999_x', '2030-01-01')"
)


def load_backends(env: dict[str, str]) -> None:
    file = Path(env["SVC_DATA_DIR"]).with_name("catalog.toml")
    file.write_text(
        f"""
        [[backends]]
        name = "gone"
        base_url = "http://127.0.0.1:{free_port()}/v1"
        max_concurrency = 1
        [[backends]]
        name = "keyed"
        base_url = "http://127.0.0.1:9/v1"
        api_key_env = "SVC_BACKEND_KEY_KEYED"
        max_concurrency = 1
        [[speech_backends]]
        name = "voices"
        protocol = "openai"
        base_url = "http://127.0.0.1:{free_port()}/v1"
        model = "kokoro"
        """
    )
    loaded = run("load_catalog", str(file), env=env)
    assert loaded.returncode == 0, loaded.stderr


FAULTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "database and Redis away": (
        {
            "DATABASE_URL": f"postgres://svc:{PASSWORD}@127.0.0.1:1/svc",
            "REDIS_URL": f"redis://:{PASSWORD}@127.0.0.1:1/0",
            "SVC_KEY_PEPPERS": "geheim",
            "ALLOWED_HOSTS": "localhost",
        },
        {
            "database": "database svc at 127.0.0.1, port 1 is not available: connection failed: connection "
            'to server at "127.0.0.1", port 1 failed: Connection refused Start it, or correct DATABASE_URL',
            "redis": "Redis at 127.0.0.1, port 1 does not answer",
            "secrets": "SVC_KEY_PEPPERS holds a secret of fewer than 32 characters. Make one with",
            "proxies": "every request gets 400. Add the names",
        },
    ),
    "unmigrated": (
        {
            "DATABASE_URL": "sqlite:///{directory}/new.sqlite3",
            "SECRET_KEY": f"django-insecure-{'0123456789abcdefghij' * 3}",
            "SVC_PUBLIC_URL": "https://console.example.com",
        },
        {
            "schema": "Run `svc migrate`.",
            "secrets": "SECRET_KEY holds a secret that looks like the placeholder of an example.",
            "proxies": "ALLOWED_HOSTS has not the host of SVC_PUBLIC_URL (console.example.com)",
        },
    ),
    "older schema": (
        {"SVC_METRICS_TOKEN": "abcabc" * 10},
        {
            "schema": "older than this release: 1 migration(s) have not run, the first "
            "usage.0008_admissions. Run",
            "secrets": "SVC_METRICS_TOKEN holds a secret of fewer than 8 different characters.",
        },
    ),
    "misspelt setting": (
        {"SVC_DRAIN_SECOND": "5"},
        {"settings": "SVC_DRAIN_SECOND is no setting."},
    ),
    "no directory": (
        {"SVC_DATA_DIR": "/proc/svc"},
        {"settings": "SVC_DATA_DIR: /proc/svc cannot be made"},
    ),
}
"""The settings that are wrong, and what the lines of the faults say, by subject."""


def lines(output: str, subject: str) -> list[str]:
    return [line for line in output.splitlines() if line.split()[1] == subject]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_that_says_what_to_do(
    installed: dict[str, str], tmp_path: Path, name: str
) -> None:
    wrong, expected = FAULTS[name]
    if name == "older schema":
        change_migrations(installed, FORGET_ONE)
    wrong = {setting: value.format(directory=tmp_path) for setting, value in wrong.items()}

    found = run("doctor", env={**installed, **wrong})

    faults = [line for line in found.stdout.splitlines() if line.startswith("fault")]
    assert {line.split()[1] for line in faults} == expected.keys()
    assert len(faults) == len(expected)
    for subject, words in expected.items():
        (line,) = lines(found.stdout, subject)
        assert words in line
    assert (found.returncode, found.stderr) == (1, "")
    assert PASSWORD not in found.stdout


def test_what_works_for_now_is_a_warning(installed: dict[str, str]) -> None:
    change_migrations(installed, KNOW_ANOTHER)

    found = run("doctor", env={**installed, "SVC_PROXIES": "0"})

    assert found.returncode == 0, found.stdout
    (newer,) = lines(found.stdout, "schema")
    assert newer.startswith("warning")
    assert "it does not know usage.0999_x." in newer
    assert "share one throttle of logins" in lines(found.stdout, "proxies")[0]


def test_a_full_disk_is_a_fault(installed: dict[str, str]) -> None:
    found = run("doctor", env=installed, program=("-c", LIMITED))

    (line,) = [each for each in lines(found.stdout, "journal") if each.startswith("fault")]
    assert "takes no record: File too large. Make room there" in line
    assert found.returncode == 1


def test_few_open_files_are_a_warning(installed: dict[str, str]) -> None:
    found = run("doctor", env=installed, program=("-c", FEW_FILES))

    (line,) = lines(found.stdout, "files")
    assert line.startswith("warning")
    assert "a process of this shell may open 300, and a worker needs 12000 for" in line
    assert found.returncode == 0


def test_the_limit_of_open_files_is_that_of_the_running_gateway(tmp_path: Path) -> None:
    program = FEW_FILES.partition("sys.argv")[0] + "print(flush=True); input()"
    sleeper = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert sleeper.stdout is not None
    sleeper.stdout.readline()
    running = state_file.StateFile(str(tmp_path / state_file.NAME))
    running.write(state_file.State(sleeper.pid, 1))
    try:
        found = open_files(tmp_path)
    finally:
        sleeper.communicate(b"\n")
    assert found.state is State.WARNING
    assert found.words.startswith("a process of the running gateway may open 300,")


def test_a_pooler_that_refuses_transactions_is_a_fault(
    installed: dict[str, str], tmp_path: Path
) -> None:
    address = os.environ.get("SVC_TEST_DATABASE_URL", "")
    if not address.startswith("postgres"):
        pytest.skip("PgBouncer needs the PostgreSQL of SVC_TEST_DATABASE_URL")
    place = urlsplit(address)
    with running_pgbouncer(
        tmp_path, place.port or 5432, place.username or "postgres", pool_mode="statement"
    ) as port:
        url = f"postgres://127.0.0.1:{port}{place.path}"
        found = run("doctor", env={**installed, "DATABASE_URL": url})

    (line,) = [each for each in lines(found.stdout, "database") if each.startswith("fault")]
    assert "no transaction can be begun, so no row can be written" in line
    assert found.returncode == 1


def test_servers_that_do_not_answer_are_named(installed: dict[str, str]) -> None:
    load_backends(installed)

    found = run("doctor", "--json", env=installed)

    told = {
        each["words"].partition(":")[0]: each
        for each in json.loads(found.stdout)
        if each["subject"] == "backend"
    }
    assert {name: each["state"] for name, each in told.items()} == {
        "gone": "fault",
        "keyed": "fault",
        "voices": "fault",
    }
    assert "SVC_BACKEND_KEY_KEYED is not set" in told["keyed"]["words"]
    assert all(each["todo"] for each in told.values())
    assert found.returncode == 1


def test_a_sound_installation_has_no_fault(installed: dict[str, str]) -> None:
    found = run("doctor", "--json", env=installed)

    told: list[dict[str, Any]] = json.loads(found.stdout)
    # The disk under the tests may be one of a container, and their limit of open files is the shell's.
    of_the_host = ("journal", "files")
    assert {each["state"] for each in told if each["subject"] not in of_the_host} == {"ok"}, told
    assert [
        each["subject"] for each in told if each["state"] == "ok" or each["subject"] == "files"
    ] == [
        *("settings", "secrets", "proxies", "journal", "files", "redis", "database", "schema"),
        *("clock", "sameness"),
    ]
    assert found.returncode == 0


@pytest.mark.redis
def test_one_that_answers_is_fine(settings: Settings) -> None:
    settings.REDIS_URL = REDIS_URL
    (found,) = servers.redis_store()
    assert found.state is State.OK, found
    assert "version " in found.words


def test_several_workers_need_one(settings: Settings) -> None:
    settings.REDIS_URL, settings.SVC_WORKERS = "", 1
    assert [each.state for each in servers.redis_store()] == [State.OK]
    settings.SVC_WORKERS = 2
    assert [each.state for each in servers.redis_store()] == [State.FAULT]


class Told:
    """A Redis that says of itself what a test wants."""

    def __init__(self, ahead: float, **told: Any) -> None:
        self._ahead = ahead
        self._told = {"redis_version": "7.2.4", "maxmemory": 0, "maxmemory_policy": "noeviction"}
        self._told |= told

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def connection_pool(self) -> Any:
        return type("Pool", (), {"connection_kwargs": {"host": "cache", "port": 6380}})

    def time(self) -> tuple[int, int]:
        return int(time.time() + self._ahead), 0

    def info(self) -> dict[str, Any]:
        return self._told


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (Told(0.0, redis_version="5.0.14"), "it is Redis 5.0.14."),
        (Told(0.0, maxmemory=1, maxmemory_policy="allkeys-lru"), "its policy is allkeys-lru"),
        (Told(60.0), "s apart"),
        (Told(-60.0), "s apart"),
    ],
)
def test_what_limits_cannot_rely_on_is_a_warning(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, told: Told, words: str
) -> None:
    settings.REDIS_URL = "redis://cache:6380"
    monkeypatch.setattr("redis.Redis.from_url", lambda *_, **__: told)
    found: list[Finding] = list(servers.redis_store())
    assert [each.state for each in found] == [State.WARNING]
    assert found[0].words.startswith("Redis at cache, port 6380: ")
    assert words in found[0].words
    assert found[0].todo
