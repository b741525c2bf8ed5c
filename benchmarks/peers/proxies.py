"""nginx and Envoy in front of the stub, one worker each: what a proxy costs that knows nothing of models."""

from __future__ import annotations

import getpass
import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.bench import Bench
from benchmarks.peers.peer import Peer
from benchmarks.processes import ROOT, Server, free_port
from benchmarks.tables import Target

_CONNECTIONS: Final = 4096
_NGINX: Final = """
daemon off; user USER; pid DIR/pid; error_log DIR/error.log; worker_processes 1; worker_rlimit_nofile 16384;
events { worker_connections CONNECTIONS; }
http {
  access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy;
  fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  keepalive_requests 1000000000;
  client_body_buffer_size 1m;
  upstream stub { SERVERS keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:PORT;
    location / {
      proxy_pass http://stub; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
}
"""
_TYPES: Final = "type.googleapis.com/envoy.extensions.filters"


def _nginx() -> str | None:
    # Debian installs it where the PATH of a user does not look.
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def nginx_missing() -> str | None:
    """Why nginx cannot run here, or None."""
    return None if _nginx() else "Debian's package nginx-light is not installed"


def start_nginx(stack: ExitStack, place: Path, ports: Sequence[int]) -> Target:
    """Start nginx with files in ``place``, in front of model servers at ``ports``, which take turns."""
    port, directory = free_port(), place / "nginx"
    directory.mkdir()
    text = _NGINX
    values = {
        "USER": getpass.getuser(),
        "DIR": str(directory),
        "CONNECTIONS": str(_CONNECTIONS),
        "SERVERS": " ".join(f"server 127.0.0.1:{each} fail_timeout=2s;" for each in ports),
        "PORT": str(port),
    }
    for name, value in values.items():
        text = text.replace(name, value)
    configuration = directory / "nginx.conf"
    configuration.write_text(text)
    log = directory / "error.log"
    server = Server(
        ["-c", str(configuration), "-e", str(log)], port, log, program=_nginx() or "nginx"
    )
    stack.callback(server.stop)
    return Target("nginx", port, server=server)


def _start_nginx(bench: Bench) -> Target:
    return start_nginx(bench.stack, bench.directory, (bench.stub_port,))


def _envoy() -> Path | None:
    # The console script would run Envoy as its child, which a signal to the script does not reach.
    found = list(ROOT.glob(".venv-clients/lib/python3*/site-packages/envoy/_bin/envoy"))
    return found[0] if found else None


def _envoy_missing() -> str | None:
    return None if _envoy() else "it is not installed: run `make clients`"


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _envoy_settings(port: int, stub_port: int) -> dict[str, Any]:
    route = {"match": {"prefix": "/"}, "route": {"cluster": "stub", "timeout": "60s"}}
    manager = {
        "@type": f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "clients",
        "codec_type": "HTTP1",
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{_TYPES}.http.router.v3.Router"}}
        ],
        "route_config": {"virtual_hosts": [{"name": "stub", "domains": ["*"], "routes": [route]}]},
    }
    cluster = {
        "name": "stub",
        "type": "STATIC",
        "circuit_breakers": {
            "thresholds": [
                {
                    "max_connections": _CONNECTIONS,
                    "max_requests": _CONNECTIONS,
                    "max_pending_requests": 1024,
                }
            ]
        },
        "load_assignment": {
            "cluster_name": "stub",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(stub_port)}}]}],
        },
    }
    listener = {
        "name": "clients",
        "address": _address(port),
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _start_envoy(bench: Bench) -> Target:
    port = free_port()
    configuration = bench.directory / "envoy.json"
    configuration.write_text(json.dumps(_envoy_settings(port, bench.stub_port)))
    server = Server(
        [
            "-c",
            str(configuration),
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "--log-level",
            "warning",
        ],
        port,
        bench.directory / "envoy.log",
        program=str(_envoy()),
    )
    bench.stack.callback(server.stop)
    return Target("Envoy", port, server=server)


PROXIES: Final = (
    Peer("nginx", nginx_missing, _start_nginx),
    Peer("Envoy", _envoy_missing, _start_envoy),
)
