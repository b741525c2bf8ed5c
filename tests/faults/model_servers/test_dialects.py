"""The recorded dialects of real model servers: the client's answer and the ledger's row.

For every dialect the client gets the contract's shape: openai-python parses it strictly, and it has no
member that the contract does not have.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from inference.wire.dialects import RunningUsage
from simulators.chat.dialects import DIALECTS
from tests.support.builders import catalog_rows
from tests.support.clients.conversation import city_tool
from tests.support.clients.raw_client import leave
from tests.support.faults.case import single
from tests.support.faults.seen import new_marker
from tests.support.live import Gateway, events
from tests.support.live_catalog import publish
from tests.support.until import until
from usage.models import UsageRow

TEXT = "The answer is 42, and that is all."
TOOLS = [city_tool("get_weather"), city_tool("get_population")]
WHOLE = {"id", "object", "created", "model", "choices", "usage", "request_id"}
HEAD = WHOLE | {"system_fingerprint"}
CHOICE = {"index", "finish_reason", "logprobs"}
MESSAGE = {"role", "content", "refusal", "reasoning_content", "tool_calls"}
USAGE = {
    *("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"),
    "prompt_tokens_details",
}

_models: dict[RunningUsage, str] = {}


@pytest.fixture(params=sorted(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def model(gateway: Gateway, dialect: str) -> str:
    """A model whose backend is configured for the dialect; one for each kind of running usage."""
    running = DIALECTS[dialect].running_usage
    if running not in _models:
        only = single(
            gateway,
            base_url=gateway.simulator.base_url,
            running_usage=running.value,
            max_concurrency=4,
            first_byte_seconds=10,
            idle_seconds=10,
            disconnect_drain_seconds=10,
        )
        weights = catalog_rows.weights(f"test/dialects-{running.name}", tokenizer="o200k")
        _models[running] = publish(gateway, only, weights=weights, tool_calling=True).identifier
    return _models[running]


class Talk:
    """One request to a dialect; ``marker`` finds it in the simulator's log."""

    def __init__(self, gateway: Gateway, dialect: str, model: str) -> None:
        self.marker = new_marker()
        self._gateway = gateway
        self._dialect = dialect
        self._model = model

    def body(self, text: str = "", directive: str = "", **fields: Any) -> dict[str, Any]:
        content = f"{self.marker} [[sim dialect={self._dialect} {directive}]] {text}"
        return {"model": self._model, "messages": [{"role": "user", "content": content}], **fields}

    def whole(self, *args: str, **fields: Any) -> dict[str, Any]:
        """A whole answer in the contract's shape."""
        answer = self._gateway.post(self.body(*args, **fields))
        assert answer.status_code == 200, answer.text
        ChatCompletion.model_validate(answer.json(), strict=True)
        completion: dict[str, Any] = answer.json()
        assert WHOLE <= completion.keys() <= HEAD
        assert (completion["object"], completion["model"]) == ("chat.completion", self._model)
        assert completion["id"].startswith("chatcmpl-")
        assert completion["request_id"] == answer.headers["x-request-id"]
        (choice,) = completion["choices"]
        assert choice.keys() == CHOICE | {"message"}
        assert choice["index"] == 0
        assert (choice["logprobs"] is None) is not fields.get("logprobs", False)
        message = choice["message"]
        assert {"role", "content", "refusal"} <= message.keys() <= MESSAGE
        assert (message["role"], message["refusal"]) == ("assistant", None)
        assert isinstance(message["content"], str) is ("tool_calls" not in message)
        assert_usage(completion["usage"])
        return completion

    def chunks(self, *args: str, **fields: Any) -> list[dict[str, Any]]:
        """The frames of a stream in the contract's shape, the last of them an error or the usage."""
        answer = self._gateway.post(self.body(*args, stream=True, **fields))
        assert answer.status_code == 200, answer.text
        found = events(answer.text)
        request_id = answer.headers["x-request-id"]
        ids = [request_id, *[None] * (len(found) - 2)]
        if found[-1] == "[DONE]":
            found.pop()
            ids[-1] = request_id
        heads = set()
        for number, chunk in enumerate(found):
            if "error" in chunk:
                assert chunk is found[-1]
                assert chunk.keys() == {"error"}
                assert chunk["error"].keys() == {"message", "type", "param", "code"}
                continue
            ChatCompletionChunk.model_validate(chunk, strict=True)
            assert chunk.keys() <= HEAD
            assert (chunk["object"], chunk["model"]) == ("chat.completion.chunk", self._model)
            assert chunk.get("request_id") == ids[number]
            heads.add((chunk["id"], chunk["created"]))
            for choice in chunk["choices"]:
                assert choice.keys() == CHOICE | {"delta"}
                assert choice["delta"].keys() <= MESSAGE
        assert len(heads) == 1
        return found

    def stream(self, *args: str, **fields: Any) -> dict[str, Any]:
        """A complete stream, assembled into a whole answer."""
        *chunks, last = self.chunks(*args, **fields)
        assert "error" not in last, last
        assert last["choices"] == []
        assert_usage(last["usage"])
        # Clients concatenate deltas, and a message with tool calls has null content.
        assert ("content" in chunks[0]["choices"][0]["delta"]) is ("tools" not in fields)
        message: dict[str, Any] = {}
        calls: dict[int, dict[str, Any]] = {}
        finish = None
        for number, chunk in enumerate(chunks):
            (choice,) = chunk["choices"]
            assert chunk["usage"] is None
            assert finish is None, "nothing follows the finish reason"
            finish = choice["finish_reason"]
            delta = choice["delta"]
            assert ("role" in delta) == (number == 0), "the role comes once"
            for name in delta.keys() & {"content", "reasoning_content"}:
                message[name] = (message.get(name) or "") + (delta[name] or "")
            for piece in delta.get("tool_calls", ()):
                add(calls, piece)
        if calls:
            message["tool_calls"] = [calls[index] for index in range(len(calls))]
        return {
            "choices": [{"message": message, "finish_reason": finish}],
            "usage": last["usage"],
            "request_id": last["request_id"],
        }

    def ask(self, *args: str, streamed: bool, **fields: Any) -> dict[str, Any]:
        return self.stream(*args, **fields) if streamed else self.whole(*args, **fields)

    def entry(self) -> dict[str, Any]:
        """The simulator's log entry of the request."""
        return self._gateway.simulator.request_with(self.marker)

    def row(self) -> UsageRow:
        """The ledger's row: the organization has sent no other request."""
        (row,) = self._gateway.rows_when(1)
        return row

    def assert_exact(self, answer: dict[str, Any]) -> None:
        """Assert that client, ledger and server have the same token counts."""
        row, entry = self._gateway.row(answer["request_id"]), self.entry()
        assert (row.outcome, row.http_status) == ("success", 200)
        figures = (entry["prompt_tokens"], entry["produced_tokens"])
        assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == figures
        usage = answer["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == figures


def assert_usage(usage: dict[str, Any]) -> None:
    assert USAGE - {"prompt_tokens_details"} <= usage.keys() <= USAGE
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 0 <= reasoning <= usage["completion_tokens"]


def add(calls: dict[int, dict[str, Any]], piece: dict[str, Any]) -> None:
    """Append a piece of a tool call, as openai-python does."""
    call = calls.get(piece["index"])
    if call is None:
        assert piece["index"] == len(calls), "indexes are dense and in order"
        assert piece.keys() == {"index", "id", "type", "function"}
        calls[piece["index"]] = piece
        return
    assert piece.keys() == {"index", "function"}, "id and type come once"
    assert piece["function"].keys() == {"arguments"}, "the name comes once"
    call["function"]["arguments"] += piece["function"]["arguments"]


@pytest.fixture
def talk(gateway: Gateway, dialect: str, model: str) -> Talk:
    return Talk(gateway, dialect, model)


def test_text_and_reasoning_are_the_same_in_every_dialect(talk: Talk, streamed: bool) -> None:
    answer = talk.ask(f"say: {TEXT}", "reasoning=4", streamed=streamed)

    (choice,) = answer["choices"]
    assert choice["message"]["content"] == TEXT
    assert len(choice["message"]["reasoning_content"].split()) >= 2
    assert choice["finish_reason"] == "stop"
    talk.assert_exact(answer)


def test_tool_calls_are_the_same_in_every_dialect(talk: Talk, streamed: bool) -> None:
    answer = talk.ask(
        "weather and population in Paris", "reasoning=2", streamed=streamed, tools=TOOLS
    )

    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert not choice["message"].get("content")
    calls = choice["message"]["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["get_weather", "get_population"]
    assert [json.loads(call["function"]["arguments"]) for call in calls] == [{"city": "Paris"}] * 2
    assert len({call["id"] for call in calls}) == 2
    assert all(call["id"] and call["type"] == "function" for call in calls)
    talk.assert_exact(answer)


def test_logprobs_are_passed_on_where_they_were_asked_for(talk: Talk, streamed: bool) -> None:
    fields = {"logprobs": True, "top_logprobs": 1}
    if streamed:
        *chunks, _ = talk.chunks("say: one two", **fields)
        found = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"]]
        tokens = [token["token"] for each in found if each for token in each["content"]]
    else:
        (choice,) = talk.whole("say: one two", **fields)["choices"]
        tokens = [token["token"] for token in choice["logprobs"]["content"]]

    assert "".join(tokens) == "one two"


def test_a_disconnected_client_pays_for_the_reported_tokens(
    talk: Talk, gateway: Gateway, dialect: str
) -> None:
    running = DIALECTS[dialect].running_usage is not RunningUsage.NONE
    body = talk.body("", "tokens=60 pace=80")
    leave(gateway, body["model"], 8, body["messages"][0]["content"])
    row, entry = talk.row(), talk.entry()

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.backend_reported_input_tokens == entry["prompt_tokens"]
    if running:
        assert entry["aborted"], "the server was let go"
        assert 5 <= row.backend_reported_output_tokens <= entry["produced_tokens"] < 60
    else:
        assert not entry["aborted"], "read on for its figures"
        assert row.backend_reported_output_tokens == entry["produced_tokens"] == 60


SILENT = {"ollama", "ollama-2024"}
"""Servers that send no error when generation fails in mid-stream: the answer just ends."""


def test_an_error_in_a_stream_is_an_error_of_the_contract(talk: Talk, dialect: str) -> None:
    running = DIALECTS[dialect].running_usage is not RunningUsage.NONE

    *_, last = talk.chunks("", "tokens=40 fault=error_frame@10")

    told = "backend_protocol_error" if dialect in SILENT else "backend_error"
    assert last["error"]["code"] == told
    assert "memory" not in json.dumps(last), "a server's failure is its own business"
    row = talk.row()
    assert (row.outcome, row.error_code, row.http_status) == (told, told, 200)
    assert row.backend_reported_output_tokens == (10 if running else 0)


@pytest.mark.parametrize(
    ("status", "told"), [(400, (400, "backend_rejected_request")), (500, (500, "backend_error"))]
)
def test_errors_have_the_contracts_shape_and_a_refusal_its_reason(
    talk: Talk, gateway: Gateway, status: int, told: tuple[int, str]
) -> None:
    answer = gateway.post(talk.body("", f"fault=status@{status}"))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == told
    reason = f"A simulated failure of the backend ({status})."
    assert (reason in error["message"]) == (told[0] == 400)
    row = talk.row()
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)


def test_a_backend_gets_the_request_fields_of_its_dialect(talk: Talk, dialect: str) -> None:
    """The answers above were requested in the server's dialect, with its settings."""
    talk.stream("say: hello", max_completion_tokens=100)

    sent = until(talk.entry)["body"]
    assert sent["max_tokens"] == 100
    assert sent["stream_options"]["include_usage"] is True
    running = DIALECTS[dialect].running_usage
    asked = sent["stream_options"].get("continuous_usage_stats", False)
    assert asked is (running is RunningUsage.VLLM)
    assert sent.get("timings_per_token", False) is (running is RunningUsage.LLAMA_CPP)
