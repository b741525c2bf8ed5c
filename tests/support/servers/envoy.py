"""Envoy in front of the gateway: every client's requests over one connection behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.clients.separate_environment import program
from tests.support.live import free_port
from tests.support.servers.programs import running

_MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _configuration(port: int, behind: int) -> dict[str, Any]:
    manager = {
        "@type": _MANAGER,
        "stat_prefix": "clients",
        "codec_type": "HTTP1",
        "use_remote_address": True,
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "http_filters": [{"name": "router", "typed_config": {"@type": _ROUTER}}],
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "svc",
                    "domains": ["*"],
                    "routes": [
                        {"match": {"prefix": "/"}, "route": {"cluster": "svc", "timeout": "60s"}}
                    ],
                }
            ]
        },
    }
    endpoint = {"endpoint": {"address": _address(behind)}}
    cluster = {
        "name": "svc",
        "type": "STATIC",
        "circuit_breakers": {"thresholds": [{"max_connections": 1}]},
        "load_assignment": {"cluster_name": "svc", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    listener = {
        "name": "clients",
        "address": _address(port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def envoy_program() -> str:
    """Envoy itself: the console script would run it as its child, which a signal does not reach."""
    script = program("envoy")
    [found] = script.parent.parent.glob("lib/python3*/site-packages/envoy/_bin/envoy")
    return str(found)


@contextmanager
def running_envoy(directory: Path, behind: int) -> Iterator[int]:
    """Run Envoy of ``.venv-clients`` with one worker thread; yields its port."""
    found, port = envoy_program(), free_port()
    configuration = directory / "envoy.json"
    configuration.write_text(json.dumps(_configuration(port, behind)))
    arguments = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]
    log = directory / "envoy.log"
    with running([found, "-c", str(configuration), *arguments], port, log):
        yield port
