"""The properties of an answer on which a strict client relies, whole and streamed."""

from __future__ import annotations

from typing import Any

import pytest

from core.money import token_cost
from tests.support.live import Gateway, events

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
FINISH_REASONS = {"stop", "length", "tool_calls", "content_filter", "function_call"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ("Tell me something.", {}),
    "cut short": ("Tell me something.", {"max_tokens": 3}),
    "reasoning": ("Please think. [[sim reasoning=4 tokens=5]]", {}),
    "tools": ("What is the weather in Paris?", {"tools": [TOOL], "tool_choice": "required"}),
    "json": ("Hello", {"response_format": {"type": "json_object"}}),
    "logprobs": ("say: ok", {"logprobs": True, "top_logprobs": 2}),
}


@pytest.mark.parametrize("model", ["running", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_answer_is_a_chat_completion(gateway: Gateway, kind: str, model: str) -> None:
    text, fields = KINDS[kind]
    answer = gateway.chat(text, model, **fields)

    body = answer.json()
    assert set(body) - {"system_fingerprint", "service_tier"} == {
        *("id", "object", "created", "model", "choices", "usage", "request_id"),
    }
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert isinstance(body["created"], int)
    assert body["model"] == gateway.models[model]
    assert body["request_id"] == answer.headers["x-request-id"]
    (choice,) = body["choices"]
    assert set(choice) == {"index", "message", "logprobs", "finish_reason"}
    assert choice["index"] == 0
    assert choice["finish_reason"] in FINISH_REASONS
    assert_message(choice["message"], choice["finish_reason"])
    assert (choice["logprobs"] is not None) is bool(fields.get("logprobs"))
    assert_usage(body["usage"])


def assert_message(message: dict[str, Any], finish_reason: str) -> None:
    assert set(message) - {"reasoning_content", "tool_calls"} == {"role", "content", "refusal"}
    assert message["role"] == "assistant"
    assert message["refusal"] is None
    if finish_reason != "tool_calls":
        assert "tool_calls" not in message
        assert isinstance(message["content"], str)
        return
    assert message["content"] is None
    for call in message["tool_calls"]:
        assert set(call) == {"id", "type", "function"}
        assert call["type"] == "function"
        assert call["id"]
        assert isinstance(call["function"]["arguments"], str)
        assert set(call["function"]) == {"name", "arguments"}


def assert_usage(usage: dict[str, Any]) -> None:
    assert set(usage) - {"prompt_tokens_details"} == {
        *("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"),
    }
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert 0 <= reasoning <= usage["completion_tokens"]


@pytest.mark.parametrize("model", ["running", "plain"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_chunks_one_usage_chunk_and_done(
    gateway: Gateway, kind: str, model: str
) -> None:
    text, fields = KINDS[kind]
    answer = gateway.chat(text, model, stream=True, **fields)

    *chunks, usage, done = events(answer.text)
    assert done == "[DONE]"
    assert_one_head([*chunks, usage], gateway.models[model], answer.headers["x-request-id"])
    assert all(chunk["usage"] is None for chunk in chunks)
    assert usage["choices"] == []
    assert_usage(usage["usage"])
    for chunk in chunks:
        (choice,) = chunk["choices"]
        assert set(choice) == {"index", "delta", "logprobs", "finish_reason"}
        assert "obfuscation" not in chunk
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    # Clients concatenate deltas, and a message with tool calls has null content.
    first = {"role": "assistant"} if kind == "tools" else {"role": "assistant", "content": ""}
    assert deltas[0] == first
    assert not [delta for delta in deltas[1:] if "role" in delta]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons[-1] in FINISH_REASONS
    assert reasons[:-1] == [None] * (len(reasons) - 1)
    assert deltas[-1] == {}
    assert_fragments([delta["tool_calls"] for delta in deltas if "tool_calls" in delta])


def assert_one_head(chunks: list[dict[str, Any]], model: str, request_id: str) -> None:
    heads = {(chunk["id"], chunk["object"], chunk["created"], chunk["model"]) for chunk in chunks}
    assert len(heads) == 1
    assert heads.pop()[1::2] == ("chat.completion.chunk", model)
    assert [chunk.get("request_id") for chunk in chunks] == [
        request_id,
        *[None] * (len(chunks) - 2),
        request_id,
    ]


def assert_fragments(fragments: list[list[dict[str, Any]]]) -> None:
    seen: set[int] = set()
    for fragment in (each for several in fragments for each in several):
        if fragment["index"] in seen:
            assert set(fragment) == {"index", "function"}
            assert set(fragment["function"]) == {"arguments"}
        else:
            assert fragment["index"] == len(seen)
            seen.add(fragment["index"])
            assert set(fragment) == {"index", "id", "type", "function"}
            assert set(fragment["function"]) == {"name", "arguments"}


def test_reasoning_is_counted_inside_the_output_and_priced_once(gateway: Gateway) -> None:
    answer = gateway.chat("[[sim reasoning=4 tokens=5]]")

    usage = answer.json()["usage"]
    row = gateway.row(answer.headers["x-request-id"])
    assert usage["completion_tokens"] == 9
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 4}
    assert row.backend_reported_output_tokens == row.generated_output_tokens == 9
    assert row.backend_reported_reasoning_tokens == 4
    assert token_cost(9, row.output_price_per_mtok) == row.output_price_per_mtok * 9 / 1_000_000


def test_a_tool_conversation_goes_on_with_the_message_as_received(gateway: Gateway) -> None:
    text, fields = KINDS["tools"]
    asked: dict[str, Any] = {"role": "user", "content": text}
    called = gateway.chat(text, **fields).json()["choices"][0]["message"]
    result = {
        "role": "tool",
        "tool_call_id": called["tool_calls"][0]["id"],
        "content": "It is 21 degrees.",
    }

    answer = gateway.post(
        {"model": "acme/demo-8b", "messages": [asked, called, result], "tools": [TOOL]}
    )

    assert "21 degrees" in answer.json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_text_that_looks_like_the_wire_stays_text(gateway: Gateway, streamed: bool) -> None:
    said = "a\r\ndata: [DONE]\r\n\r\nb\u2028c\u0085d\u2029e \U0001f600 é \\u0041 </script>"

    answer = gateway.chat(f"say: {said}", stream=streamed)

    if streamed:
        assert not {"\u2028", "\u2029", "\u0085"} & set(answer.text)
        *chunks, _, done = events(answer.text)
        assert done == "[DONE]"
        text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    else:
        text = answer.json()["choices"][0]["message"]["content"]
    assert text == said
