"""Fields of ``POST /v1/chat/completions`` as a model server receives them: one of each kind.

``tests/inference/wire/test_fields.py`` has every field and value of the contract's table,
``test_request.py`` beside it the body that is made of them.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.support.live import Gateway

TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Find a thing.",
        "parameters": {
            "type": "object",
            "properties": {"q": {"type": "string", "minLength": 1, "pattern": "^.+$"}},
        },
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "not json"}}
CARRIED: dict[str, Any] = {
    "temperature": 0,
    "stop": ["a", "b", "c", "d"],
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "find"}},
    "response_format": {"type": "json_object"},
    "metadata": {"a": "b"},
}
UNMODELLED = {
    name: {"canary": [1]}
    for name in (
        *("functions", "reasoning_effort", "api_base", "base_url", "extra_body", "x-canary", ""),
    )
}


def marked() -> str:
    """Make a text that no other request contains."""
    return f"canary-{uuid.uuid4().hex}"


def test_fields_of_each_kind_reach_the_model_server_or_are_dropped(gateway: Gateway) -> None:
    """Modelled fields and messages arrive unchanged, nulls and all that is not modelled never."""
    text = marked()
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be exact."},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "found"},
        {"role": "user", "content": f"{text} say: ok", "name": "ann"},
    ]
    asked = {
        "model": "acme/demo-8b",
        "messages": [{**each, "cache_control": {"type": "x"}} for each in messages],
        **CARRIED,
        **UNMODELLED,
        "seed": None,
        "max_completion_tokens": 5,
        "max_tokens": 9,
        "stream": True,
        "stream_options": {"include_usage": False},
    }

    assert gateway.post(asked).status_code == 200

    assert gateway.simulator.request_with(text)["body"] == {
        "model": "demo-8b-awq",
        "messages": messages,
        **CARRIED,
        "max_completion_tokens": 5,
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def test_an_invalid_field_is_named_and_no_model_server_gets_the_request(gateway: Gateway) -> None:
    text = marked()

    answer = gateway.post(
        {
            "model": "acme/demo-8b",
            "messages": [{"role": "user", "content": text}, {"role": "critic", "content": "x"}],
        }
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "messages[1].role"
    assert not [each for each in gateway.simulator.requests() if text in json.dumps(each)]
    assert gateway.rows() == []


def test_the_model_servers_own_name_is_sent_to_it_and_never_to_the_client(
    gateway: Gateway,
) -> None:
    text = marked()
    answers = [
        gateway.chat(f"{text}-{streamed} [[sim fault={fault}]]", stream=streamed)
        for streamed in (True, False)
        for fault in ("none", "status@404", "cut@2", "status@400")
    ]

    asked = {each["model"] for each in gateway.simulator.requests() if text in json.dumps(each)}
    assert asked == {"demo-8b-awq"}
    for answer in answers:
        assert "demo-8b-awq" not in answer.text + str(answer.headers)
        assert "simulator" not in answer.text.replace("svc-simulator-1", "")


def test_tool_choice_none_is_served_without_tool_calling_and_sends_no_tools(
    gateway: Gateway,
) -> None:
    text = marked()

    answer = gateway.chat(f"{text} say: ok", "mini", tools=[TOOL], tool_choice="none")

    assert answer.status_code == 200
    assert set(gateway.simulator.request_with(text)["body"]) == {"model", "messages"}
    assert gateway.row(answer.headers["x-request-id"]).shape == "chat"


def test_no_header_of_the_caller_but_a_valid_trace_reaches_the_model_server(
    gateway: Gateway,
) -> None:
    text = marked()
    headers = {
        "x-request-id": "req_chosen",
        "cookie": "session=1",
        "x-forwarded-for": "10.0.0.1",
        "x-forwarded-host": "elsewhere",
        "forwarded": "for=10.0.0.1",
        "openai-organization": "org",
        "x-stainless-retry-count": "1",
        "api-key": "secret",
        "x-svc-diagnostic-capture": "no",
        "traceparent": "an invalid one",
        "tracestate": "vendor=1",
    }

    answer = gateway.post(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": f"{text} say: ok"}]},
        headers=headers,
    )

    assert gateway.simulator.request_with(text)["received_headers"] == [
        *("accept", "accept-encoding", "content-length", "content-type", "host", "user-agent"),
    ]
    assert answer.headers["x-request-id"] != "req_chosen"
    assert "set-cookie" not in answer.headers
