"""What is in an answer, whole and streamed.

Its form, on which a strict client relies, is in ``tests/faults/model_servers/test_dialects.py``.
"""

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


def test_an_answer_that_is_cut_short_says_so(gateway: Gateway) -> None:
    whole = gateway.chat("Tell me something.", max_tokens=3)
    streamed = gateway.chat("Tell me something.", max_tokens=3, stream=True)

    assert whole.json()["choices"][0]["finish_reason"] == "length"
    first, *_, finish, _, _ = events(streamed.text)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert finish["choices"] == [
        {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}
    ]


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
    text = "What is the weather in Paris?"
    asked: dict[str, Any] = {"role": "user", "content": text}
    called = gateway.chat(text, tools=[TOOL], tool_choice="required").json()["choices"][0][
        "message"
    ]
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
