"""Real processes on real sockets: the gateway and the model simulator, and a view of the ledger."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from django.conf import settings
from django.db import connections
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

from accounts.keys.keys import mint
from accounts.models import ApiKey, Organization, Scope
from svc_project.operator_settings import SETTINGS
from tests.support.processes import children, runs, workers_of
from tests.support.servers.own_servers import free_port as free_port  # many take it from here
from tests.support.until import until
from usage.models import UsageRow

ROOT = Path(__file__).resolve().parents[2]
Ran = subprocess.CompletedProcess[str]
START_SECONDS = 120.0
NO_TLS = False
"""Given as ``verify``: loading certificates, which loopback calls do not need, takes 20 ms each time."""
Found = TypeVar("Found")


def with_constants(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a gateway; constants among them are passed on by ``tests.support.settings``."""
    constants = {
        name: json.loads(value)
        for name, value in environment.items()
        if name.startswith("SVC_") and name not in SETTINGS and hasattr(settings, name)
    }
    variables = {name: value for name, value in environment.items() if name not in constants}
    return {**variables, "SVC_TEST_CONSTANTS": json.dumps(constants)}


def run(*command: str | Path, environment: Mapping[str, str] | None = None, **options: Any) -> Ran:
    """Run a program to its end, with ``environment`` added to this process's."""
    env = {**os.environ, **(environment or {})}
    options = {"env": env, "timeout": 120, **options}
    done: Ran = subprocess.run(command, check=False, capture_output=True, text=True, **options)
    return done


def manage(*arguments: str | Path, **environment: str) -> Ran:
    """Run a command of ``manage.py`` to its end."""
    return run(sys.executable, ROOT / "manage.py", *arguments, environment=environment, cwd=ROOT)


def output_of(done: Ran) -> str:
    """What a program printed that ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fetch(url: str, method: str = "GET", *, key: str = "", **options: Any) -> httpx2.Response:
    """Send one request, with ``key`` in its ``authorization``."""
    headers = {**options.pop("headers", {}), **({"authorization": f"Bearer {key}"} if key else {})}
    options = {"timeout": 60, **options}
    return httpx2.request(method, url, headers=headers, verify=NO_TLS, **options)


class Command:
    """A ``manage.py`` command that runs until it is stopped."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        log: Path,
        program: str = "manage.py",
        checkout: Path = ROOT,
    ) -> None:
        self.log = log
        self._file = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, program, *arguments],
            cwd=checkout,
            env={**os.environ, **with_constants(environment)},
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )

    def wait_for(self, address: str) -> None:
        """Wait until ``address`` (host:port) accepts connections."""
        host, _, port = address.partition(":")

        def takes_connections() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) == 0

        until(takes_connections, START_SECONDS)

    def stop(self, seconds: float = 60.0) -> int:
        """Send SIGTERM, wait, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._file.close()

    @property
    def worker(self) -> int:
        """The process id of the only worker of a ``serve``."""
        (pid,) = until(lambda: workers_of(self.process.pid))
        return pid

    def kill(self) -> None:
        """Send SIGKILL to the process and to those that it has started, and wait."""
        self.process.send_signal(signal.SIGSTOP)  # so that a parent replaces nothing
        pids = children(self.process.pid)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        until(lambda: not any(map(runs, pids)))
        self._file.close()


def marker_of(entry: Mapping[str, Any]) -> str:
    """Return the first words of a logged request's last message, up to a full stop.

    It is "" where the message has several parts: other tests ask the same simulator with such.
    """
    content = entry["body"]["messages"][-1]["content"]
    return content.partition(".")[0] if isinstance(content, str) else ""


@dataclass
class Simulator:
    """The model simulator; ``requests`` is its own log of requests."""

    command: Command
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def requests(self) -> list[dict[str, Any]]:
        answer = httpx2.get(f"http://127.0.0.1:{self.port}/sim/requests", verify=NO_TLS)
        found: list[dict[str, Any]] = answer.json()["requests"]
        return found

    def request_with(self, marker: str) -> dict[str, Any]:
        """Return the one request whose body contains ``marker``, once it has ended."""

        def look() -> dict[str, Any] | None:
            matching = [each for each in self.requests() if marker in json.dumps(each)]
            assert len(matching) < 2, "the marker is not unique"
            return matching[0] if matching else None

        return until(look)


@dataclass
class Gateway:
    """A running gateway and one organization of its own in it."""

    port: int
    speech_port: int
    command: Command
    organization: Organization
    api_key: ApiKey
    key: str
    simulator: Simulator
    models: dict[str, str] = field(
        default_factory=lambda: {
            "running": "acme/demo-8b",
            "plain": "acme/plain-8b",
            "mini": "acme/demo-mini",
        }
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    def openai(self, **options: Any) -> OpenAI:
        http_client = options.pop("http_client", None) or DefaultHttpxClient(verify=NO_TLS)
        options = {"max_retries": 0, "http_client": http_client, **options}
        client = OpenAI(base_url=self.base_url, api_key=self.key, **options)
        # Before its sockets are collected, which would warn in the middle of another test.
        weakref.finalize(client, http_client.close)
        return client

    def async_openai(self, **options: Any) -> AsyncOpenAI:
        http_client = options.pop("http_client", None) or DefaultAsyncHttpxClient(verify=NO_TLS)
        options = {"max_retries": 0, "http_client": http_client, **options}
        return AsyncOpenAI(base_url=self.base_url, api_key=self.key, **options)

    def post(self, body: Any, **options: Any) -> httpx2.Response:
        """POST ``body`` (bytes as they are, anything else as JSON) as a chat request."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self.headers, **options.pop("headers", {})}
        url = f"{self.base_url}/chat/completions"
        return fetch(url, "POST", content=content, headers=headers, **options)

    def get(self, path: str) -> httpx2.Response:
        """GET a path under ``/v1``."""
        return fetch(f"{self.base_url}{path}", key=self.key)

    def chat(self, text: str, model: str = "running", **fields: Any) -> httpx2.Response:
        """Send one user message to one of ``models``."""
        return self.post(
            {
                "model": self.models.get(model, model),
                "messages": [{"role": "user", "content": text}],
                **fields,
            }
        )

    def mint(self, scope: Scope = Scope.INFERENCE) -> str:
        """Create another key of the organization."""
        return mint(self.organization, scope, "test").secret

    def sees_changes(self) -> None:
        """Return when every request sees what was changed of keys and organizations before this call.

        A key that is not known waits until the process has read all changes (accounts.keys.keyring).
        """
        seen = self.post({}, headers={"authorization": f"Bearer {self.mint()}"})
        assert seen.status_code == 400, seen.text

    def rows(self) -> list[UsageRow]:
        """Return the organization's rows, oldest first."""
        return list(UsageRow.objects.filter(organization_id=self.organization.pk))

    def row(self, request_id: str) -> UsageRow:
        """Return the row of one request; the journal keeps it while the database is slow."""
        return until(lambda: UsageRow.objects.filter(request_id=request_id).first())

    def rows_when(self, count: int) -> list[UsageRow]:
        """Wait for ``count`` rows; for requests whose client did not wait."""
        until(lambda: len(self.rows()) >= count)
        return self.rows()


def events(text: str) -> list[Any]:
    """Parse a stream strictly: ``data:`` frames and blank lines only.

    JSON is parsed; ``[DONE]`` stays a string.
    """
    frames = text.split("\n\n")
    assert frames.pop() == "", "a stream ends with a blank line"
    found: list[Any] = []
    for frame in frames:
        assert frame.startswith("data: "), frame[:80]
        assert "\n" not in frame
        payload = frame.removeprefix("data: ")
        found.append(payload if payload == "[DONE]" else json.loads(payload))
    return found


@contextmanager
def database(name: str) -> Iterator[None]:
    """Point Django's default connection, in every thread, at another database of the server."""
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
