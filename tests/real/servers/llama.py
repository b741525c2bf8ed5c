"""A running llama.cpp server, and what it says of itself."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.live import ROOT, fetch, free_port
from tests.support.until import until

PACKAGES = ("xllamacpp", "gguf")
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Counters:
    """The server's own count since its start, and what it does now."""

    prompt_tokens: int
    output_tokens: int
    processing: int


@dataclass(frozen=True)
class LlamaServer:
    """llama.cpp's server with tiny weights; it knows its model as ``tiny``."""

    port: int
    process: subprocess.Popen[str]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def counters(self) -> Counters:
        """The prompt tokens include those that were in its cache."""
        answer = fetch(f"http://127.0.0.1:{self.port}/metrics")
        found = dict(
            line.removeprefix("llamacpp:").split()
            for line in answer.text.splitlines()
            if line.startswith("llamacpp:")
        )
        return Counters(
            int(found["prompt_tokens_total"]) + int(found["prompt_tokens_cached_total"]),
            int(found["tokens_predicted_total"]),
            int(found["requests_processing"]),
        )

    def busy_slots(self) -> list[dict[str, Any]]:
        """The slots that work on a request now."""
        slots = fetch(f"http://127.0.0.1:{self.port}/slots").json()
        return [slot for slot in slots if slot["is_processing"]]

    def is_ready(self) -> bool:
        """Whether the weights are loaded."""
        return fetch(f"http://127.0.0.1:{self.port}/health").status_code == 200

    def be_quiet(self) -> Counters:
        """Return what the server has counted, once it works on nothing."""
        until(lambda: not self.busy_slots())
        return self.counters()


@contextmanager
def running_llama(
    directory: Path, says: str | None = None, port: int | None = None
) -> Iterator[LlamaServer]:
    """Makes the weights in ``directory``, starts the server there, and ends it.

    It answers everything with ``says``; without one, with noise. Skips the test where a package is missing.
    """
    if missing := [name for name in PACKAGES if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{' and '.join(missing)} is missing. Install requirements-dev.txt.")
    from tests.real.servers.weights import write_noise, write_speaker  # gguf may be missing

    weights, port = directory / "tiny.gguf", port or free_port()
    if says is None:
        write_noise(weights)
    else:
        write_speaker(weights, says)
    command = [sys.executable, "-m", "tests.real.servers.llama_process", str(weights), str(port)]
    with (
        (directory / "llama.log").open("ab") as log,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            announced = process.stdout.readline()
            assert announced.startswith("listening"), (directory / "llama.log").read_text()
            server = LlamaServer(port, process)
            until(server.is_ready)
            yield server
        finally:
            process.kill()
