"""Fields of ``POST /v1/chat/completions`` as a model server receives them: one of each kind.

``tests/inference/wire/test_fields.py`` has every field and value of the contract's table.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

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
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where."}},
    "required": ["city"],
    "additionalProperties": False,
}
PARTS = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "not json"}}
CONVERSATION = [
    {"role": "system", "content": "Be short."},
    {"role": "developer", "content": "Be exact."},
    {"role": "user", "content": PARTS},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "found"},
    {"role": "assistant", "content": "No.", "refusal": "I would rather not."},
]

CARRIED: dict[str, Any] = {
    "temperature": 0,
    "stop": ["a", "b", "c", "d"],
    "seed": -1,
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "top_logprobs": 20,
    "tools": [TOOL],
    "tool_choice": {"type": "function", "function": {"name": "find"}},
    "parallel_tool_calls": False,
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": SCHEMA, "strict": True},
    },
    "user": "someone",
    "metadata": {"a": "b"},
}
UNMODELLED = [
    "functions",
    "function_call",
    "reasoning_effort",
    "verbosity",
    "prediction",
    "modalities",
    "audio",
    "web_search_options",
    "api_base",
    "base_url",
    "chat_template_kwargs",
    "extra_body",
    "guided_json",
    "priority",
    "x-canary",
    "",
]
REFUSED: list[tuple[str, Any, str]] = [
    ("temperature", 2.1, "temperature"),
    ("messages", [{"role": "critic", "content": "x"}], "messages[0].role"),
]


def marked() -> str:
    """Make a text that no other request contains."""
    return f"canary-{uuid.uuid4().hex}"


def sent(gateway: Gateway, **fields: Any) -> dict[str, Any]:
    """Send a request with ``fields``; return the body that reaches the model server."""
    text = marked()
    answer = gateway.chat(f"{text} say: ok", **fields)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = gateway.simulator.request_with(text)["body"]
    return body


def test_fields_of_each_kind_reach_the_model_server_unchanged(gateway: Gateway) -> None:
    body = sent(gateway, **CARRIED)

    assert {name: body[name] for name in CARRIED} == CARRIED
    assert set(body) == {"model", "messages", *CARRIED}


def test_every_role_and_part_arrives_unchanged(gateway: Gateway) -> None:
    text = marked()
    messages = [*CONVERSATION, {"role": "user", "content": f"{text} say: ok", "name": "ann"}]

    assert gateway.post({"model": "acme/demo-8b", "messages": messages}).status_code == 200

    assert gateway.simulator.request_with(text)["body"]["messages"] == messages


def test_fields_that_are_not_modelled_are_dropped_without_an_error(gateway: Gateway) -> None:
    fields = {name: {"canary": [1]} for name in UNMODELLED}

    assert set(sent(gateway, **fields)) == {"model", "messages"}


def test_members_that_are_not_modelled_never_arrive_either(gateway: Gateway) -> None:
    text = marked()
    message = {"role": "user", "content": f"{text} say: ok", "cache_control": {"type": "x"}}
    tool = {**TOOL, "canary": 1, "function": {**TOOL["function"], "canary": 1}}  # type: ignore[dict-item]  # a JSON document

    gateway.post({"model": "acme/demo-8b", "messages": [message], "tools": [tool]})

    body = gateway.simulator.request_with(text)["body"]
    assert body["messages"] == [{"role": "user", "content": f"{text} say: ok"}]
    assert body["tools"] == [TOOL]


@pytest.mark.parametrize(("field", "value", "param"), REFUSED)
def test_an_invalid_field_is_named_and_no_model_server_gets_the_request(
    gateway: Gateway, field: str, value: Any, param: str
) -> None:
    text = marked()

    answer = gateway.post(
        {
            "model": "acme/demo-8b",
            "messages": [{"role": "user", "content": text}],
            field: value,
        }
    )

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert not [each for each in gateway.simulator.requests() if text in json.dumps(each)]
    assert gateway.rows() == []


CAPS = {"max_tokens", "max_completion_tokens"}
OPTIONAL = {*CARRIED, *CAPS, "stream", "stream_options"}


def test_an_explicit_null_means_absent(gateway: Gateway) -> None:
    assert set(sent(gateway, **dict.fromkeys(OPTIONAL))) == {"model", "messages"}


def test_of_two_caps_the_newer_field_counts(gateway: Gateway) -> None:
    body = sent(gateway, max_completion_tokens=5, max_tokens=9)

    assert body["max_completion_tokens"] == body["max_tokens"] == 5


@pytest.mark.parametrize("name", sorted(CAPS))
def test_the_cap_reaches_a_server_that_reads_either_field(gateway: Gateway, name: str) -> None:
    body = sent(gateway, **{name: 7})

    assert body["max_completion_tokens"] == body["max_tokens"] == 7


@pytest.mark.parametrize(
    "asked", [{}, {"stream_options": {"include_usage": False}}, {"stream_options": {}}]
)
def test_a_stream_asks_for_usage_whatever_the_caller_says(
    gateway: Gateway, asked: dict[str, Any]
) -> None:
    running = sent(gateway, stream=True, **asked)
    plain = sent(gateway, model="plain", stream=True, **asked)

    assert running["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert plain["stream_options"] == {"include_usage": True}


def test_a_whole_answer_asks_without_stream_options(gateway: Gateway) -> None:
    assert set(sent(gateway, stream_options={"include_usage": True})) == {"model", "messages"}
    assert sent(gateway, stream=False, stream_options={"include_usage": True})["stream"] is False


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


def test_no_header_of_the_caller_reaches_the_model_server(gateway: Gateway) -> None:
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
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }

    answer = gateway.post(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": f"{text} say: ok"}]},
        headers=headers,
    )

    assert gateway.simulator.request_with(text)["received_headers"] == [
        "accept",
        "accept-encoding",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    ]
    assert answer.headers["x-request-id"] != "req_chosen"
    assert "set-cookie" not in answer.headers


SHAPES: list[tuple[dict[str, Any], str]] = [
    ({}, "chat"),
    ({"response_format": {"type": "text"}}, "chat"),
    ({"response_format": {"type": "json_object"}}, "json_object"),
    (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "schema": SCHEMA},
            }
        },
        "json_schema",
    ),
    ({"tools": [TOOL]}, "tools"),
    ({"tools": [TOOL], "response_format": {"type": "json_object"}}, "tools"),
    ({"tools": [TOOL], "tool_choice": "none"}, "chat"),
    ({"tools": []}, "chat"),
]


@pytest.mark.parametrize(("fields", "shape"), SHAPES)
def test_the_row_has_the_shape_of_the_request(
    gateway: Gateway, fields: dict[str, Any], shape: str
) -> None:
    answer = gateway.chat("Hello", stream=True, **fields)

    row = gateway.row(answer.headers["x-request-id"])
    assert (row.shape, row.streamed) == (shape, True)
