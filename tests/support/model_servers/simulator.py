"""Runs the model simulator in its own process, and sends requests over real sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from inference.chat.tokenizers import Tokenizer

MANAGE = Path(__file__).resolve().parents[3] / "manage.py"
DEADLINE = 60.0


@dataclass(frozen=True)
class RunningSimulator:
    """``url`` is the address without ``/v1``."""

    url: str
    process: subprocess.Popen[str]
    client: httpx2.Client

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def post(self, body: Any, **options: Any) -> httpx2.Response:
        return self.client.post("/v1/chat/completions", json=body, **options)

    def chat(self, text: str, **fields: Any) -> dict[str, Any]:
        """Return the completion for one message of the user."""
        response = self.post(ask(text, **fields))
        assert response.status_code == 200, response.text
        completion: dict[str, Any] = response.json()
        return completion

    def stream(self, text: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the chunks for one message of the user; ``[DONE]`` must end them."""
        fields.setdefault("stream_options", {"include_usage": True})
        response = self.post(ask(text, stream=True, **fields))
        assert response.status_code == 200, response.text
        *chunks, done = frames(response.text)
        assert done == "[DONE]"
        return [json.loads(chunk) for chunk in chunks]

    def raw(self, text: str, **fields: Any) -> bytes:
        """Return every byte of the response, up to the end of the connection."""
        with self.connect(text, **fields) as connection:
            return read_to_end(connection)

    def connect(self, text: str, **fields: Any) -> socket.socket:
        """Open a connection and send the request for ``text``."""
        content = json.dumps(ask(text, **fields)).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), DEADLINE)
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(content), content)
        )
        return connection

    def requests(self) -> list[dict[str, Any]]:
        """Return the simulator's own log of requests, oldest first."""
        entries: list[dict[str, Any]] = self.client.get("/sim/requests").json()["requests"]
        return entries

    def last_request(self) -> dict[str, Any]:
        return self.requests()[-1]

    def forget_requests(self) -> None:
        self.client.delete("/sim/requests").raise_for_status()


@contextmanager
def running_simulator(*arguments: str) -> Iterator[RunningSimulator]:
    """Start ``manage.py simulate_backend`` on a free port, and stop it at the end."""
    command = [sys.executable, str(MANAGE), "simulate_backend", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            announced = process.stdout.readline().strip()
            assert announced.endswith("/v1"), announced
            url = announced.rsplit(" ", 1)[1].removesuffix("/v1")
            with httpx2.Client(base_url=url, timeout=DEADLINE, trust_env=False) as client:
                yield RunningSimulator(url, process, client)
        finally:
            process.kill()


def ask(text: str, **fields: Any) -> dict[str, Any]:
    """Build a request body with one message of the user."""
    return {"model": "test", "messages": [{"role": "user", "content": text}], **fields}


def frames(text: str) -> list[str]:
    """Return the payloads of the ``data:`` lines."""
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]


def read_to_end(connection: socket.socket) -> bytes:
    """Read until the server closes. Raises ``ConnectionResetError`` on a reset."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def answer_tokens(tokenizer: Tokenizer, message: dict[str, Any]) -> int:
    """The tokens of an assistant message: its reasoning, its content, and its tool calls."""
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    texts = [message.get("reasoning_content"), message.get("content")]
    texts += [function[part] for function in functions for part in ("name", "arguments")]
    return sum(tokenizer.count(text) for text in texts if text)
