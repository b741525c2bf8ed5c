"""``transformers serve``, from ``.venv-transformers`` (``make real-transformers``), with tiny weights."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.live import ROOT, free_port
from tests.support.servers.programs import running

_BIN: Final = ROOT / ".venv-transformers/bin"
PROGRAM: Final = _BIN / "transformers"
START_SECONDS: Final = 180.0
_ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
}


@contextmanager
def running_transformers(directory: Path) -> Iterator[tuple[str, str]]:
    """Makes the weights in ``directory`` and runs the server; it keeps its cache there too.

    Yields its address, with ``/v1``, and its name of the model, which is a path.
    """
    environment = {**os.environ, **_ENVIRONMENT, "HF_HOME": str(directory / "home")}
    model, log, port = directory / "tiny", directory / "serve.log", free_port()
    subprocess.run(
        [_BIN / "python", ROOT / "tests/real/servers/hf_weights.py", model],
        env=environment,
        check=True,
        timeout=START_SECONDS,
    )
    command = [str(PROGRAM), "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with running([*command, str(model)], port, log, "/health", START_SECONDS, env=environment):
        yield f"http://127.0.0.1:{port}/v1", str(model)
