"""The answers of the model simulator: their content, token counts and pace."""

from __future__ import annotations

import time
from typing import Any

import pytest

from inference.chat.tokenizers import count_prompt, load
from tests.support.model_servers.simulator import (
    RunningSimulator,
    answer_tokens,
    ask,
    frames,
    running_simulator,
)

TOKENIZER = load("o200k")


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
    assert usage["completion_tokens"] == answer_tokens(TOKENIZER, choice["message"])
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


@pytest.mark.long
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


def test_it_reasons_first_when_asked_to_and_counts_that(simulator: RunningSimulator) -> None:
    chunks = simulator.stream("Please think about say: yes")
    parts = [next(iter(c["choices"][0]["delta"]), "") for c in chunks[1:] if c["choices"]]
    usage = chunks[-1]["usage"]
    thoughts = content(chunks, "reasoning_content")
    assert parts == sorted(parts, reverse=True)  # reasoning_content, then content, then the finish
    assert content(chunks) == "yes"
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert reasoning == TOKENIZER.count(thoughts) > 0
    assert usage["completion_tokens"] == reasoning + 1


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


def test_a_burst_puts_several_frames_into_one_write(simulator: RunningSimulator) -> None:
    raw = simulator.raw("hi [[sim tokens=20 burst=8]]", stream=True)
    writes = [part for part in raw.split(b"\r\n") if part.startswith(b"data: ")]
    assert [len(frames(write.decode())) for write in writes] == [8, 8, 6, 1]
