"""Programs that are not Python packages of the project: found or skipped, run, and stopped."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.live import fetch
from tests.support.until import until

_START_SECONDS = 60.0


def debian_program(name: str, package: str) -> str:
    """Return the path of a program. Skip the test if it is not installed."""
    # An ordinary user's PATH has no sbin, where Debian puts servers.
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{name} is missing: install the package {package} to run this test")
    return found


@contextmanager
def running(
    arguments: list[str],
    port: int,
    log: Path,
    path: str = "",
    seconds: float = _START_SECONDS,
    **options: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server, with ``options`` of its process, for as long as the block runs.

    The block begins when it takes connections on ``port`` of this host, or answers ``path`` with 200.
    """
    with log.open("ab") as written:
        process = subprocess.Popen(arguments, stdout=written, stderr=subprocess.STDOUT, **options)

    def serves() -> bool:
        assert process.poll() is None, log.read_text()
        if path:
            with suppress(httpx2.TransportError):
                return fetch(f"http://127.0.0.1:{port}{path}").status_code == 200
            return False
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(serves, seconds)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()
