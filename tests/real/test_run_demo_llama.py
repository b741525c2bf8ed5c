"""``make run MODEL_SERVER=...`` on an empty data directory, in front of a real llama.cpp server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.real.servers.llama import LlamaServer, running_llama
from tests.real.trial import NEVER_ENDS
from tests.support.live import NO_TLS, Command, fetch, free_port
from tests.support.until import until

pytestmark = pytest.mark.timeout(300)
SAYS = """\
{"lamp_is_on": true}
<tool_call>
{"name": "set_lamp", "arguments": {"lamp_is_on": false}}
</tool_call>"""
"""What the model says to everything; of it, a schema lets the first line through."""
SCHEMA = {
    "type": "object",
    "properties": {"lamp_is_on": {"type": "boolean"}},
    "required": ["lamp_is_on"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "set_lamp", "parameters": SCHEMA}}]
MOST = 3500


@dataclass(frozen=True)
class Demo:
    """A running demonstration, and what it printed."""

    url: str
    printed: str

    def key(self, kind: str) -> str:
        found = re.search(rf"^  {kind} key +(\S+)$", self.printed, re.MULTILINE)
        assert found is not None, self.printed
        return found[1]

    def get(self, path: str, kind: str) -> Any:
        answer = fetch(f"{self.url}/v1{path}", key=self.key(kind))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask(self, **fields: Any) -> httpx2.Response:
        """The answer to one request to the only model."""
        with self.asking(**fields) as answer:
            answer.read()
        assert answer.status_code == 200, answer.text
        return answer

    def asking(self, **fields: Any) -> AbstractContextManager[httpx2.Response]:
        """The same, before its body is read."""
        headers = {"authorization": f"Bearer {self.key('Inference')}"}
        messages = [{"role": "user", "content": "Switch the lamp on."}]
        body = {"model": "tiny", "messages": messages, **fields}
        address = f"{self.url}/v1/chat/completions"
        return httpx2.stream("POST", address, json=body, headers=headers, timeout=60, verify=NO_TLS)

    def rows(self) -> list[dict[str, Any]]:
        """The ledger's rows, as the usage export has them."""
        rows: list[dict[str, Any]] = self.get("/usage/export", "Read usage")["rows"]
        return rows


@pytest.fixture(scope="module")
def calling_llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A llama.cpp server whose model calls a tool."""
    with running_llama(tmp_path_factory.mktemp("calling"), says=SAYS) as server:
        yield server


@pytest.fixture(scope="module")
def demo(calling_llama: LlamaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """What ``make run MODEL_SERVER=...`` starts, with nothing there before."""
    directory: Path = tmp_path_factory.mktemp("demo")
    port, speech_port, simulator_port = free_port(), free_port(), free_port()
    command = Command(
        [
            "run_demo",
            f"--port={port}",
            f"--speech-port={speech_port}",
            f"--simulator-port={simulator_port}",
            "--voices=plain",
            # Without /v1, and beside a server that is not there.
            f"--model-server=http://127.0.0.1:{calling_llama.port},http://127.0.0.1:{free_port()}",
        ],
        {
            "SVC_DATA_DIR": str(directory),
            "DATABASE_URL": f"sqlite:///{directory}/demo.sqlite3",
            "PYTHONUNBUFFERED": "1",
        },
        directory / "demo.log",
    )

    def greeted() -> bool:
        assert command.process.poll() is None, command.log.read_text()
        return "Stop with Ctrl-C." in command.log.read_text()

    try:
        until(greeted, 200)
        command.wait_for(f"127.0.0.1:{port}")
        yield Demo(f"http://127.0.0.1:{port}", command.log.read_text())
    finally:
        command.stop(60)


def test_what_was_found_is_printed_and_published(demo: Demo, calling_llama: LlamaServer) -> None:
    assert f"it answers at {calling_llama.base_url}" in demo.printed
    assert "tiny: streams, tool calls, JSON schemas; a context of 4096 tokens" in demo.printed
    assert "cannot connect: Connection refused" in demo.printed
    models = {model["id"]: model for model in demo.get("/models", "Inference")["data"]}
    model = models["tiny"]
    assert model["context_length"] == 4096
    assert model["capabilities"]["tool_calling"] is True
    assert model["capabilities"]["structured_output"] is True


def test_chat_stream_tool_call_schema_and_hang_up_are_on_rows_that_equal_the_servers_counters(
    demo: Demo, calling_llama: LlamaServer
) -> None:
    known = {row["request_id"] for row in demo.rows()}
    before = calling_llama.be_quiet()

    whole = demo.ask(max_tokens=9).json()
    assert whole["usage"]["completion_tokens"] == 9
    streamed = demo.ask(stream=True, max_tokens=9).text
    assert streamed.endswith("data: [DONE]\n\n")
    called = demo.ask(tools=TOOLS, tool_choice="required").json()
    (call,) = called["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "set_lamp"
    assert json.loads(call["function"]["arguments"]) == {"lamp_is_on": False}
    response_format = {
        "type": "json_schema",
        "json_schema": {"name": "lamp", "strict": True, "schema": SCHEMA},
    }
    fitting = demo.ask(response_format=response_format).json()["choices"][0]["message"]["content"]
    assert json.loads(fitting) == {"lamp_is_on": True}
    with demo.asking(stream=True, **{**NEVER_ENDS, "max_tokens": MOST}) as left:
        next(left.iter_bytes())

    after = calling_llama.be_quiet()
    until(lambda: len(demo.rows()) == len(known) + 5)
    rows = [row for row in demo.rows() if row["request_id"] not in known]
    outcomes = sorted(row["outcome"] for row in rows)
    assert outcomes == ["client_disconnected", *["success"] * 4]
    done = [row for row in rows if row["outcome"] == "success"]
    (gone,) = [row for row in rows if row["outcome"] != "success"]
    prompts = sum(row["backend_reported_input_tokens"] for row in rows)
    assert prompts == after.prompt_tokens - before.prompt_tokens
    # A disconnect reaches the server a little after the last figure that it reported.
    made = after.output_tokens - before.output_tokens
    reported = sum(row["backend_reported_output_tokens"] for row in done)
    assert 0 < gone["backend_reported_output_tokens"] <= made - reported < MOST
