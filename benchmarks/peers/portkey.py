"""Portkey's gateway, from ``benchmarks/peers/portkey`` (``make bench-compare``), in front of the stub."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from benchmarks.bench import Bench
from benchmarks.peers.peer import Peer
from benchmarks.processes import Server, free_port
from benchmarks.tables import Target

_NAME: Final = "Portkey's gateway"
_FOLDER: Final = Path(__file__).parent / "portkey"
_PROGRAM: Final = _FOLDER / "node_modules/@portkey-ai/gateway/build/start-server.js"


def _missing() -> str | None:
    """Why the gateway cannot run here, or None."""
    if shutil.which("node") is None:
        return "node is not installed"
    if not _PROGRAM.exists():
        return "it is not installed: run `make bench-compare` where npm is"
    return None


def _start(bench: Bench) -> Target:
    """Start the gateway, which is one process and takes its backend from each request's headers."""
    port = free_port()
    server = Server(
        [str(_PROGRAM), f"--port={port}", "--headless"],
        port,
        bench.directory / "portkey.log",
        {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1"},
        program=shutil.which("node") or "node",
    )
    bench.stack.callback(server.stop)
    headers = {
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": f"http://127.0.0.1:{bench.stub_port}/v1",
    }
    return Target(_NAME, port, server=server, headers=headers, exact=False)


PEER: Final = Peer(_NAME, _missing, _start, cpu=4.5)
