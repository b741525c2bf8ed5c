"""The gateway and the simulator of a checkout, with organizations and keys for the list of requests."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import free_port

_START_SECONDS = 60.0

_UNLIMITED = (
    *("--requests-per-minute", "unlimited", "--tokens-per-minute", "unlimited"),
    *("--speech-requests-per-minute", "unlimited", "--speech-characters-per-day", "unlimited"),
)
_ORGANIZATIONS: dict[str, tuple[str, ...]] = {
    "main": _UNLIMITED,
    "enterprise": (*_UNLIMITED, "--plan", "enterprise"),
    "limited": ("--requests-per-minute", "2", "--speech-requests-per-minute", "2"),
    "few": ("--tokens-per-minute", "4000", "--speech-characters-per-day", "10"),
}
_KEYS: dict[str, tuple[str, str]] = {
    "inference": ("main", "inference"),
    "read": ("main", "read"),
    "speech": ("main", "speech"),
    "revoked": ("main", "inference"),
    "speech_enterprise": ("enterprise", "speech"),
    "limited": ("limited", "inference"),
    "speech_limited": ("limited", "speech"),
    "few_tokens": ("few", "inference"),
    "speech_few_characters": ("few", "speech"),
}

_MODEL = """
[[backends]]
name = "{name}"
base_url = "http://127.0.0.1:{port}/v1"
max_concurrency = 256
running_usage = "{usage}"
keep_alive = "off"

[[models]]
id = "acme/{name}"
weights = "acme/{name}@1"
tokenizer = "o200k"
backends = [{{ name = "{name}", model = "served-{name}" }}]
context_length = 32768
max_request_bytes = {bytes}
default_max_output_tokens = 2048
tool_calling = {able}
structured_output = {able}
published = {published}
pricing = {{ input_per_mtok = "0.15", output_per_mtok = "0.60", currency = "USD" }}
"""
_VOICE = """
[[speech_backends]]
name = "remote-{delivery}"
base_url = "http://127.0.0.1:{port}/v1"
model = "simulated"
delivery = "{delivery}"
normalizes_text = true
first_byte_seconds = 1.0
total_seconds = 8.0
{extra}

[[voices]]
id = "remote-{delivery}"
engine = "remote-{delivery}"
engine_voice = "noah"
"""
_EMBEDDED = """
[[voices]]
id = "ava"
engine_voice = "en-us+f3"

[[voices]]
id = "asha"
language = "hi"
engine_voice = "hi+f2"
"""


@dataclass(frozen=True, slots=True)
class Servers:
    """The ports of a running gateway by surface, and its keys by the names that cases use."""

    ports: dict[str, int]
    keys: dict[str, str]


def catalog(chat_port: int, speech_port: int) -> str:
    """Return the catalog file: one model for each kind of model server, and voices of each kind."""
    able = {"bytes": 1048576, "able": "true", "published": "true", "port": chat_port}
    models = [
        _MODEL.format_map({**able, "name": "demo-8b", "usage": "vllm"}),
        _MODEL.format_map({**able, "name": "plain-8b", "usage": "none"}),
        _MODEL.format_map({**able, "name": "llama-8b", "usage": "llama.cpp"}),
        _MODEL.format_map(
            {**able, "name": "demo-mini", "usage": "vllm", "bytes": 65536, "able": "false"}
        ),
        _MODEL.format_map({**able, "name": "dead-8b", "usage": "vllm", "port": 1}),
        _MODEL.format_map({**able, "name": "draft", "usage": "vllm", "published": "false"}),
        _MODEL.format_map({**able, "name": "old-8b", "usage": "vllm"})
        + 'superseded_by = "acme/demo-8b"\nshutdown_at = 2099-01-31T00:00:00Z\n',
    ]
    extras = {
        "file": "",
        "pcm": 'extra_fields = { stream_format = "audio" }',
        "sse": 'extra_fields = { stream_format = "sse" }',
    }
    voices = [
        _VOICE.format(delivery=delivery, port=speech_port, extra=extra)
        for delivery, extra in extras.items()
    ]
    return "".join([*models, _EMBEDDED, *voices])


@contextmanager
def running(checkout: Path, directory: Path) -> Iterator[Servers]:
    """Run the gateway and the simulator of ``checkout``; ``directory`` gets all their data."""
    ports = [free_port() for _ in range(4)]
    environment = {
        **os.environ,
        "DATABASE_URL": f"sqlite:///{directory / 'svc.sqlite3'}",
        "SVC_DATA_DIR": str(directory),
        "DEBUG": "false",
        "SECRET_KEY": "x" * 50,
        "SVC_SAMPLED_FRACTION": "0",
        "SVC_BACKEND_CONNECT_SECONDS": "1",
        "SVC_BACKEND_FIRST_BYTE_SECONDS": "1",
        "SVC_BACKEND_IDLE_SECONDS": "1",
        "SVC_REFUSED_REQUESTS_PER_MINUTE": "100000",
        "SVC_THROTTLE_FLUSH_SECONDS": "0.1",
    }

    def manage(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    def started(port: int, *arguments: str) -> subprocess.Popen[bytes]:
        log = (directory / f"{arguments[0]}.log").open("wb")
        command = [sys.executable, "manage.py", *arguments]
        process = subprocess.Popen(command, cwd=checkout, env=environment, stdout=log, stderr=log)
        _wait(process, port)
        return process

    path = directory / "catalog.toml"
    path.write_text(catalog(ports[2], ports[3]))
    manage("migrate", "-v0")
    manage("load_catalog", str(path))
    for name, options in _ORGANIZATIONS.items():
        manage("create_organization", name, "--json", *options)
    keys = {"unknown": "svc_live_" + "A" * 40, "malformed": "nonsense"}
    for name, (organization, scope) in _KEYS.items():
        made = json.loads(manage("create_key", organization, "--scope", scope, "--json"))
        keys[name] = made["key"]
        if name == "revoked":
            manage("revoke_key", made["api_key_id"])
    with ExitStack() as stack:
        for process in (
            started(
                ports[2], "simulate_backend", f"--port={ports[2]}", f"--speech-port={ports[3]}"
            ),
            started(ports[0], "serve", f"--port={ports[0]}", f"--speech-port={ports[1]}"),
        ):
            stack.callback(process.wait, 30)
            stack.callback(process.terminate)
        yield Servers({"inference": ports[0], "speech": ports[1]}, keys)


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    process.kill()
    raise SystemExit(f"A server did not start on port {port}.")
