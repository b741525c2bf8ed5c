"""Runs JavaScript clients with node and the packages of ``tests/clients/js``."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.live import ROOT

PACKAGE = ROOT / "tests/clients/js"
RUN_SECONDS = 60


def installed() -> Path:
    """Install the packages of ``package-lock.json`` once, and return their folder.

    Skips the test when node or npm is missing; fails it when npm cannot install.
    """
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: install Node.js 20 or newer to run this test")
    modules = PACKAGE / "node_modules"
    lock = (PACKAGE / "package-lock.json").read_bytes()
    receipt = modules / ".svc-installed-lock"
    with (PACKAGE / ".npmrc").open("rb") as turnstile:
        # One test worker installs, the others wait for it.
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        if not receipt.exists() or receipt.read_bytes() != lock:
            npm = subprocess.run(
                ["npm", "ci"], cwd=PACKAGE, capture_output=True, text=True, check=False
            )
            assert npm.returncode == 0, npm.stderr
            receipt.write_bytes(lock)
    return PACKAGE


def node(*arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> str:
    """Run ``node`` in the folder of the packages and return its output; fail when it fails."""
    run = subprocess.run(
        ["node", *arguments],
        check=False,
        cwd=installed(),
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
