"""LiteLLM's proxy, from ``.venv-litellm`` (``make clients``), in front of the stub."""

from __future__ import annotations

import json
from typing import Final

from benchmarks.bench import Bench
from benchmarks.payloads import Pace
from benchmarks.peers.peer import Peer
from benchmarks.processes import ROOT, Server, free_port
from benchmarks.tables import Target

_NAME: Final = "LiteLLM's proxy"
_PYTHON: Final = ROOT / ".venv-litellm/bin/python"
_PROGRAM: Final = ROOT / ".venv-litellm/bin/litellm"
_ENVIRONMENT: Final = {
    # Nothing is fetched or sent: prices of models come with the package.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "LITELLM_LOG": "ERROR",
    "DISABLE_ADMIN_UI": "True",
    "NO_PROXY": "127.0.0.1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def _missing() -> str | None:
    """Why the proxy cannot run here, or None."""
    return None if _PROGRAM.exists() else "it is not installed: run `make clients`"


def _start(bench: Bench) -> Target:
    """Start the proxy with one worker, without a database, keys or limits."""
    port = free_port()
    config = bench.directory / "litellm.yaml"
    config.write_text(json.dumps(_settings(bench.stub_port)))  # JSON is YAML
    server = Server(
        [
            *(str(_PROGRAM), "--config", str(config)),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--num_workers", "1", "--telemetry", "False"),
        ],
        port,
        bench.directory / "litellm.log",
        _ENVIRONMENT,
        program=str(_PYTHON),
    )
    bench.stack.callback(server.stop)
    return Target(_NAME, port, server=server, exact=False)


def _settings(backend_port: int) -> dict[str, object]:
    address = f"http://127.0.0.1:{backend_port}/v1"
    return {
        "model_list": [
            {
                "model_name": f"bench/{pace}",
                "litellm_params": {
                    "model": f"openai/{pace}",
                    "api_base": address,
                    "api_key": "none",
                },
            }
            for pace in Pace
        ],
        "litellm_settings": {"telemetry": False, "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
    }


PEER: Final = Peer(_NAME, _missing, _start, cpu=40.0, slow=False)
