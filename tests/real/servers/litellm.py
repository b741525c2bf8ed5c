"""LiteLLM's proxy, from ``.venv-litellm`` (``make clients``), in front of other servers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.live import ROOT, free_port
from tests.support.servers.programs import running

PROGRAM: Final = ROOT / ".venv-litellm/bin/litellm"
START_SECONDS: Final = 300.0
_ENVIRONMENT: Final = {
    # Nothing is fetched or sent: prices of models come with the package.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "DISABLE_ADMIN_UI": "True",
    "NO_PROXY": "127.0.0.1",
}


def _without_database() -> dict[str, str]:
    """This process's variables, without the database that LiteLLM would take for its own."""
    return {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}


@contextmanager
def running_litellm(directory: Path, routes: Mapping[str, str]) -> Iterator[str]:
    """Runs the proxy; yields its address, with ``/v1``.

    ``routes`` has, for each model that it serves, the address of an OpenAI-compatible server, which
    is asked for ``tiny``. Retries and pauses of its own are off, and so is its client that sends on
    connections which llama.cpp has closed, as docs/connect-servers.md says.
    Skips the test where the program is not installed.
    """
    if not PROGRAM.exists():
        pytest.skip("litellm is missing in .venv-litellm: run `make clients` to run this test")
    port = free_port()
    settings = {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {"model": "openai/tiny", "api_base": address, "api_key": "none"},
            }
            for name, address in routes.items()
        ],
        "litellm_settings": {
            "telemetry": False,
            "num_retries": 0,
            "disable_aiohttp_transport": True,
        },
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }
    config = directory / "litellm.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML
    command = [str(PROGRAM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    with running(
        [*command, "--telemetry", "False"],
        port,
        directory / "litellm.log",
        "/health/liveliness",
        START_SECONDS,
        cwd=directory,
        env={**_without_database(), **_ENVIRONMENT},
    ):
        yield f"http://127.0.0.1:{port}/v1"
