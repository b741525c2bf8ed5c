"""A conversation through the live gateway, and its rows in the ledger."""

from __future__ import annotations

from tests.support.live import Gateway, events


def test_a_whole_answer_has_the_contracts_shape_and_a_row(gateway: Gateway) -> None:
    answer = gateway.chat("say: Good morning")

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert body["object"] == "chat.completion"
    assert body["model"] == "acme/demo-8b"
    assert body["choices"][0]["message"]["content"] == "Good morning"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["request_id"] == answer.headers["x-request-id"]
    row = gateway.row(body["request_id"])
    assert row.outcome == "success"
    assert row.backend_reported_input_tokens == body["usage"]["prompt_tokens"]
    assert row.backend_reported_output_tokens == body["usage"]["completion_tokens"]
    assert row.delivered_output_tokens == row.generated_output_tokens


def test_a_stream_ends_with_the_usage_chunk_and_done(gateway: Gateway) -> None:
    answer = gateway.chat("say: Good morning", stream=True)

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *chunks, usage, done = events(answer.text)
    assert done == "[DONE]"
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == 2
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == (
        "Good morning"
    )
    assert {chunk["model"] for chunk in (*chunks, usage)} == {"acme/demo-8b"}
    assert gateway.row(answer.headers["x-request-id"]).outcome == "success"
