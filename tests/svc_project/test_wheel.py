"""The wheel, installed outside of the checkout, serves from any directory."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.live import ROOT, fetch, free_port, output_of, run
from tests.support.servers.programs import running
from tests.support.servers.redis_store import REDIS_URL

pytestmark = pytest.mark.long

PACKAGES = ("svc_project", "simulators", "inference", "speech", "usage", "accounts", "core")
BESIDE = ("templates", "static")


@dataclass
class Installation:
    """``svc`` in an environment of its own, and the settings of a directory of its own."""

    wheel: Path
    program: Path
    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SVC_", "DJANGO_")) and name != "DATABASE_URL"
        }
        return {**kept, "XDG_STATE_HOME": str(self.directory), "REDIS_URL": REDIS_URL}

    def run(self, *arguments: str) -> str:
        return output_of(run(self.program, *arguments, cwd=self.directory, env=self.environment))

    def running(
        self, *arguments: str, port: int, path: str
    ) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        """Run a command until it is left; it answers ``path`` with 200 by then."""
        log = self.directory / f"{arguments[0]}.log"
        command = [str(self.program), *arguments]
        return running(command, port, log, path, cwd=self.directory, env=self.environment)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The wheel is built as pip builds it; what it depends on is that of the tests."""
    directory = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    output_of(run(*pip, "wheel", "--no-deps", "--wheel-dir", directory, ROOT, timeout=300))
    (wheel,) = directory.glob("*.whl")
    place = directory / "environment"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    library = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    (library / "shared.pth").write_text(sysconfig.get_path("purelib"))
    output_of(run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel))
    (directory / "elsewhere").mkdir()
    return Installation(wheel, place / "bin" / "svc", directory / "elsewhere")


def test_the_wheel_has_every_file_of_the_packages_and_none_of_the_tests(
    installation: Installation,
) -> None:
    listed = output_of(run("git", "ls-files", *PACKAGES, *BESIDE, cwd=ROOT))
    expected = {
        f"svc_project/shipped/{name}" if name.startswith(BESIDE) else name
        for name in listed.splitlines()
        if (ROOT / name).exists()
    }
    held = {
        name for name in zipfile.ZipFile(installation.wheel).namelist() if ".dist-info/" not in name
    }
    assert expected - held == set()
    assert {name.partition("/")[0] for name in held} == set(PACKAGES)


@pytest.mark.redis
def test_it_migrates_and_serves_with_several_workers(installation: Installation) -> None:
    assert installation.run("--version") == f"svc {installation.wheel.name.split('-')[1]}\n"
    installation.run("migrate", "--verbosity", "0")
    simulated, port, speech_port = free_port(), free_port(), free_port()
    shipped = next(installation.program.parents[1].rglob("shipped/deploy/demo_catalog.toml"))
    catalog = installation.directory / "catalog.toml"
    catalog.write_text(shipped.read_text().replace("127.0.0.1:9000", f"127.0.0.1:{simulated}"))
    installation.run("load_catalog", "catalog.toml")
    installation.run("org", "create", "acme")
    key = json.loads(installation.run("keys", "create", "acme", "--scope", "inference", "--json"))

    with (
        installation.running(
            "simulate_backend", "--port", str(simulated), port=simulated, path="/v1/models"
        ) as simulator,
        installation.running(
            *("serve", "--workers", "2", "--port", str(port), "--speech-port", str(speech_port)),
            port=port,
            path="/readyz",
        ) as gateway,
    ):
        url = f"http://127.0.0.1:{port}"
        body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "Hello"}]}
        answer = fetch(f"{url}/v1/chat/completions", "POST", key=key["key"], json=body)
        assert answer.status_code == 200, answer.text
        for path in (
            "/console/login",
            "/static/console.css",
            "/static/admin/css/base.css",
            "/docs/",
            "/docs/guides/tools",
            "/docs/guides/schema-subset",
            "/docs/guides/sdk-defaults",
        ):
            assert fetch(f"{url}{path}").status_code == 200, path
        installation.run("doctor")
    assert (simulator.returncode, gateway.returncode) == (0, 0)
    assert (installation.directory / "svc" / "svc.sqlite3").exists()
    installation.run("verify_ledger")
