"""Runs JavaScript clients with node and the packages of ``tests/clients/js``."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from tests.support.live import ROOT, output_of, run

PACKAGE = ROOT / "tests/clients/js"


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
            output_of(run("npm", "ci", cwd=PACKAGE, timeout=300))
            receipt.write_bytes(lock)
    return PACKAGE


def node(*arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> str:
    """Run ``node`` in the folder of the packages and return its output; fail when it fails."""
    return output_of(run("node", *arguments, cwd=installed(), input=stdin, environment=environment))
