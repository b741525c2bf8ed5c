"""The model simulator, seen by a caller: answers, counts, pace, errors and its own account."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from inference.tokenizers import count_answer, count_prompt, load
from tests.simulator import RunningSimulator, ask, eventually, frames, running_simulator

TOKENIZER = load("o200k")


@pytest.fixture(scope="module")
def simulator() -> Iterator[RunningSimulator]:
    with running_simulator() as running:
        yield running


def content(chunks: list[dict[str, Any]], field: str = "content") -> str:
    deltas = (chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"])
    return "".join(delta.get(field) or "" for delta in deltas)


def finish(chunks: list[dict[str, Any]]) -> list[str]:
    reasons = (chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"])
    return [reason for reason in reasons if reason]


def test_it_lists_its_models_and_is_healthy(simulator: RunningSimulator) -> None:
    listed = simulator.client.get("/v1/models").json()
    assert [model["object"] for model in listed["data"]] == ["model"]
    assert simulator.client.get("/health").status_code == 200
    assert simulator.client.get("/v1/elsewhere").json()["error"]["type"] == "not_found_error"


def test_a_completion_counts_what_it_says(simulator: RunningSimulator) -> None:
    completion = simulator.chat("How do bees fly?")
    (choice,) = completion["choices"]
    usage = completion["usage"]
    assert completion["object"] == "chat.completion"
    assert choice["finish_reason"] == "stop"
    assert "How do bees fly?" in choice["message"]["content"]
    assert usage["completion_tokens"] == count_answer(TOKENIZER, choice["message"])
    assert usage["prompt_tokens"] == count_prompt(TOKENIZER, ask("How do bees fly?")["messages"])
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 20 <= usage["completion_tokens"] <= 60


def test_a_stream_is_role_deltas_finish_usage_done(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("say: one two three")
    role, *deltas, finishing, usage = chunks
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [delta["choices"][0]["delta"] for delta in deltas] == [
        {"content": "one"},
        {"content": " two"},
        {"content": " three"},
    ]
    assert finishing["choices"][0]["delta"] == {}
    assert finishing["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 3
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert [chunk for chunk in chunks[:-1] if "usage" in chunk] == []


def test_the_same_request_gets_the_same_text_streamed_or_not(simulator: RunningSimulator) -> None:
    whole = simulator.chat("Tell me about rivers", seed=4)
    streamed = simulator.stream("Tell me about rivers", seed=4)
    other = simulator.chat("Tell me about rivers", seed=5)
    text = whole["choices"][0]["message"]["content"]
    assert content(streamed) == text
    assert streamed[-1]["usage"] == whole["usage"]
    assert other["choices"][0]["message"]["content"] != text


def test_a_stream_has_usage_only_when_asked(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("hello", stream_options=None)
    assert all("usage" not in chunk for chunk in chunks)
    assert finish(chunks) == ["stop"]


def test_running_usage_grows_with_every_token(simulator: RunningSimulator) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    chunks = simulator.stream("say: one two three", stream_options=options)
    assert [chunk["usage"]["completion_tokens"] for chunk in chunks] == [0, 1, 2, 3, 3, 3]


def test_running_usage_can_be_switched_off() -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    with running_simulator("--no-continuous-usage") as simulator:
        chunks = simulator.stream("hello", stream_options=options)
    assert [chunk for chunk in chunks if "usage" in chunk] == chunks[-1:]


@pytest.mark.parametrize(
    "text", ["", "  two  spaces", "नमस्ते दुनिया 🧿!", "line\nbreak", "{not json"]
)
def test_say_is_answered_exactly(simulator: RunningSimulator, text: str) -> None:
    stripped = text.rstrip()
    request = f"Please say: {text} [[sim pace=0]]"
    completion = simulator.chat(request)
    assert completion["choices"][0]["message"]["content"] == stripped
    assert completion["usage"]["completion_tokens"] == TOKENIZER.count(stripped)
    assert content(simulator.stream(request)) == stripped


@pytest.mark.parametrize("cap", [{"max_tokens": 7}, {"max_tokens": 90, "max_completion_tokens": 7}])
def test_the_token_cap_ends_the_answer(simulator: RunningSimulator, cap: dict[str, int]) -> None:
    completion = simulator.chat("Tell me everything", **cap)
    assert completion["choices"][0]["finish_reason"] == "length"
    assert completion["usage"]["completion_tokens"] == 7
    assert TOKENIZER.count(completion["choices"][0]["message"]["content"]) == 7


@pytest.mark.parametrize("stop", ["three", ["nothing", " three"]])
def test_a_stop_sequence_ends_the_answer(
    simulator: RunningSimulator, stop: str | list[str]
) -> None:
    completion = simulator.chat("say: one two three four", stop=stop)
    assert completion["choices"][0]["message"]["content"].rstrip() == "one two"
    assert completion["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("tokens", [0, 1, 40, 1000])
def test_the_directive_sets_the_length(simulator: RunningSimulator, tokens: int) -> None:
    chunks = simulator.stream(f"hello [[sim tokens={tokens}]]")
    assert chunks[-1]["usage"]["completion_tokens"] == tokens
    assert TOKENIZER.count(content(chunks)) == tokens
    assert len(chunks) == tokens + 3


def test_the_directive_is_counted_in_the_prompt_and_not_repeated(
    simulator: RunningSimulator,
) -> None:
    text = "hello [[sim tokens=5 pace=0]]"
    completion = simulator.chat(text)
    assert "sim" not in completion["choices"][0]["message"]["content"]
    assert completion["usage"]["prompt_tokens"] == count_prompt(TOKENIZER, ask(text)["messages"])


def test_it_thinks_first_when_told_to_and_counts_that(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("Please think about say: yes")
    parts = [next(iter(c["choices"][0]["delta"]), "") for c in chunks[1:] if c["choices"]]
    usage = chunks[-1]["usage"]
    thoughts = content(chunks, "reasoning_content")
    assert parts == sorted(parts, reverse=True)  # reasoning_content, then content, then the finish
    assert content(chunks) == "yes"
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert reasoning == TOKENIZER.count(thoughts) > 0
    assert usage["completion_tokens"] == reasoning + 1


def test_the_directive_sets_the_length_of_the_reasoning(simulator: RunningSimulator) -> None:
    completion = simulator.chat("hello [[sim reasoning=30 tokens=10]]")
    usage = completion["usage"]
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 30}
    assert usage["completion_tokens"] == 40
    assert TOKENIZER.count(completion["choices"][0]["message"]["reasoning_content"]) == 30


def test_log_probabilities_come_with_every_token(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("say: one two", logprobs=True, top_logprobs=3)
    listed = [chunk["choices"][0]["logprobs"] for chunk in chunks[1:3]]
    assert [entry["content"][0]["token"] for entry in listed] == ["one", " two"]
    (whole,) = simulator.chat("say: one two", logprobs=True)["choices"]
    for entry in whole["logprobs"]["content"]:
        assert entry["logprob"] <= 0
        assert bytes(entry["bytes"]).decode() == entry["token"]
        assert entry["top_logprobs"] == []
    for entry in listed:
        top = [alternative["logprob"] for alternative in entry["content"][0]["top_logprobs"]]
        assert len(top) == 3
        assert top == sorted(top, reverse=True)
    assert simulator.chat("hello")["choices"][0]["logprobs"] is None


def test_the_pace_is_kept(simulator: RunningSimulator) -> None:
    began = time.monotonic()
    with simulator.connect("hi [[sim tokens=11 pace=50 first=0.2]]", stream=True) as connection:
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        headers_at = time.monotonic() - began
        while b"role" not in connection.recv(65536):
            pass
        first_at = time.monotonic() - began
        while connection.recv(65536):
            pass
    assert headers_at < first_at
    assert first_at >= 0.2
    assert time.monotonic() - began >= 0.2 + 10 / 50


def test_the_pace_can_be_set_for_all_requests() -> None:
    with running_simulator("--tokens-per-second", "50", "--first-token-delay", "0.1") as simulator:
        began = time.monotonic()
        simulator.chat("hi [[sim tokens=6]]")
        assert time.monotonic() - began >= 0.1 + 5 / 50
        simulator.chat("hi [[sim tokens=5000 pace=0 first=0]]")


def test_a_burst_puts_several_frames_into_one_write(simulator: RunningSimulator) -> None:
    raw = simulator.raw("hi [[sim tokens=20 burst=8]]", stream=True)
    writes = [part for part in raw.split(b"\r\n") if part.startswith(b"data: ")]
    assert [len(frames(write.decode())) for write in writes] == [8, 8, 6, 1]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard"}]}, "messages[0].role"),
        ({"temperature": 3}, "temperature"),
        ({"n": 2}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"messages": [{"role": "user", "content": "[[sim speed=1]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim tokens=x]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim burst=0]]"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "[[sim fault=sad]]"}]}, "messages[0].content"),
    ],
)
def test_a_bad_field_is_a_400_that_names_it(
    simulator: RunningSimulator, fields: dict[str, Any], param: str
) -> None:
    response = simulator.post({**ask("hello"), **fields})
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param)
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'{"model": "\xff"}', b"[" * 50_000])
def test_a_body_that_is_no_json_object_is_a_400(simulator: RunningSimulator, body: bytes) -> None:
    response = simulator.client.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_named_models_and_a_key_are_enforced() -> None:
    with running_simulator("--model", "a", "--model", "b/c", "--api-key", "secret") as simulator:
        key = {"authorization": "Bearer secret"}
        listed = simulator.client.get("/v1/models", headers=key).json()["data"]
        assert [model["id"] for model in listed] == ["a", "b/c"]
        assert simulator.post({**ask("hi"), "model": "b/c"}, headers=key).status_code == 200
        unknown = simulator.post({**ask("hi"), "model": "d"}, headers=key)
        assert unknown.status_code == 404
        assert unknown.json()["error"]["code"] == "model_not_found"
        for headers in ({}, {"authorization": "Bearer wrong"}):
            refused = simulator.post(ask("hi"), headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "authentication_error"


def test_it_keeps_an_account_of_its_requests(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    with running_simulator("--record", str(record)) as simulator:
        chunks = simulator.stream("say: one two three", user="u")
        simulator.post(ask("hi", temperature=9))
        entry, refused = simulator.requests()
        assert simulator.client.delete("/sim/requests").status_code == 204
        assert simulator.requests() == []
    body = entry.pop("body")
    assert body["messages"] == ask("say: one two three")["messages"]
    assert entry["id"] == chunks[0]["id"]
    assert entry["model"] == "test"
    assert entry["prompt_tokens"] == chunks[-1]["usage"]["prompt_tokens"]
    assert (entry["stream"], entry["produced_tokens"], entry["sent_frames"]) == (True, 3, 6)
    assert (entry["aborted"], entry["fault"], entry["status"]) == (False, None, 200)
    assert entry["received_fields"] == ["messages", "model", "stream", "stream_options", "user"]
    assert "content-type" in entry["received_headers"]
    assert refused["status"] == 400
    assert [json.loads(line) for line in record.read_text().splitlines()] == [
        entry,
        {key: value for key, value in refused.items() if key != "body"},
    ]


@pytest.mark.parametrize("stream", [True, False])
def test_a_caller_that_hangs_up_is_noted_at_once(simulator: RunningSimulator, stream: bool) -> None:
    simulator.forget_requests()
    with simulator.connect("hi [[sim tokens=1000 pace=20]]", stream=stream) as connection:
        if stream:
            while b"content" not in connection.recv(65536):
                pass
        else:
            connection.settimeout(0.2)
            with pytest.raises(TimeoutError):
                connection.recv(1)
    eventually(lambda: len(simulator.requests()) == 1)
    entry = simulator.last_request()
    assert entry["aborted"]
    assert 0 < entry["produced_tokens"] < 1000


def test_a_caller_that_leaves_after_the_end_did_not_abort(simulator: RunningSimulator) -> None:
    simulator.forget_requests()
    for _ in range(20):
        simulator.raw("hi [[sim tokens=3]]", stream=True)
    assert [entry["aborted"] for entry in simulator.requests()] == [False] * 20


def test_the_fast_mode_answers_in_the_same_shape() -> None:
    with running_simulator("--fast") as simulator:
        completion = simulator.chat("anything")
        chunks = simulator.stream("anything", max_tokens=5)
        usual = simulator.stream("anything")
        assert simulator.post([1]).status_code == 400
    assert completion["usage"]["completion_tokens"] == 8
    assert chunks[-1]["usage"]["completion_tokens"] == 5
    assert chunks[-1]["choices"] == []
    assert len(chunks) == 5 + 3
    assert len(usual) == 200 + 3


def test_the_fast_mode_keeps_a_pace() -> None:
    with running_simulator("--fast", "--tokens-per-second", "100") as simulator:
        began = time.monotonic()
        chunks = simulator.stream("anything", max_tokens=20)
        assert time.monotonic() - began >= 20 / 100
    assert len(chunks) == 20 + 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_quits_when_told_to_even_with_a_stream_open(number: signal.Signals) -> None:
    with running_simulator() as simulator:
        with simulator.connect("hi [[sim tokens=1000 pace=10]]", stream=True) as connection:
            assert connection.recv(65536)
            simulator.process.send_signal(number)
            assert simulator.process.wait(10) == 0
        with pytest.raises(ConnectionError):
            socket.create_connection(("127.0.0.1", simulator.port), 1).close()


def test_an_sdk_of_the_convention_reads_it(simulator: RunningSimulator) -> None:
    with openai.OpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="test",
            messages=[{"role": "user", "content": "say: hello there"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "hello there"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 2
