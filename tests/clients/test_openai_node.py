"""The ``openai`` package of npm has the conversation; the ledger has the same one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.clients.conversation import (
    ANSWERS,
    FIRST_TURN,
    MODEL,
    QUESTION,
    READING_QUESTION,
    SECOND_TURN,
    TOOL,
    TOOL_ANSWER,
    TOOL_RESULT,
    Seen,
    assert_ledger_agrees,
    limited,
)
from tests.support.clients.javascript import node
from tests.support.live import Gateway

# Each part is a node process, and the first one may install the packages.
pytestmark = pytest.mark.timeout(300)


def told(gateway: Gateway, part: str) -> dict[str, Any]:
    """Run one part of ``js/conversation.mjs``, and return what the client saw."""
    script = {
        "base_url": gateway.base_url,
        "api_key": gateway.key,
        "model": MODEL,
        "turns": [FIRST_TURN, SECOND_TURN],
        "question": QUESTION,
        "tool": TOOL,
        "tool_result": TOOL_RESULT,
        "reading_question": READING_QUESTION,
    }
    answer: dict[str, Any] = json.loads(node("conversation.mjs", part, stdin=json.dumps(script)))
    return answer


def seen(answer: dict[str, Any], shape: str = "chat") -> list[Seen]:
    return [Seen(**each, shape=shape) for each in answer["seen"]]


@pytest.mark.walk
def test_a_conversation_of_a_stream_and_a_whole_answer(gateway: Gateway) -> None:
    answer = told(gateway, "turns")

    assert tuple(answer["texts"]) == ANSWERS
    assert answer["usages"] == [False] * (len(answer["usages"]) - 1) + [True]
    assert_ledger_agrees(gateway, seen(answer))


def test_the_tool_runner_calls_the_tool_by_itself(gateway: Gateway) -> None:
    answer = told(gateway, "runner")

    assert answer["text"] == TOOL_ANSWER
    rows = gateway.rows_when(2)
    assert [(row.outcome, row.shape) for row in rows] == [("success", "tools")] * 2
    assert answer["total"]["prompt_tokens"] == sum(r.backend_reported_input_tokens for r in rows)
    assert answer["total"]["completion_tokens"] == sum(
        r.backend_reported_output_tokens for r in rows
    )


def test_a_zod_schema_is_answered_by_an_object_of_its_shape(gateway: Gateway) -> None:
    answer = told(gateway, "parse")

    for parsed in answer["parsed"]:
        assert (parsed["city"], parsed["degrees"]) == ("Lyon", 21)
    assert_ledger_agrees(gateway, seen(answer, "json_schema"))


def test_failures_are_typed_errors(gateway: Gateway) -> None:
    answer = told(gateway, "errors")

    assert {
        case: (each["name"], each["status"], each["type"], each["param"], each["code"])
        for case, each in answer.items()
    } == {
        "stranger": ("AuthenticationError", 401, "authentication_error", None, None),
        "model": ("NotFoundError", 404, "not_found_error", "model", "model_not_found"),
        "field": ("BadRequestError", 400, "invalid_request_error", "temperature", None),
        "backend": ("InternalServerError", 500, "server_error", None, "backend_error"),
    }
    assert all(each["request_id"].startswith("req_") for each in answer.values())
    assert [row.request_id for row in gateway.rows_when(1)] == [answer["backend"]["request_id"]]


def test_a_rate_limit_gives_the_time_to_wait(gateway: Gateway) -> None:
    tiny = limited(gateway, requests_per_minute=1)
    tiny.chat(FIRST_TURN)

    error = told(tiny, "limit")["limit"]

    assert (error["name"], error["status"]) == ("RateLimitError", 429)
    assert error["code"] == "rate_limit_exceeded"
    assert 0 < int(error["retry_after_ms"]) <= 60_000
    assert len(tiny.rows_when(1)) == 1


def test_a_failure_in_the_middle_of_a_stream_is_thrown_after_the_text_so_far(
    gateway: Gateway,
) -> None:
    answer = told(gateway, "broken")

    assert answer["text"]
    assert answer["error"]["name"] == "APIError"
    assert (answer["error"]["type"], answer["error"]["code"]) == ("server_error", "backend_error")
    [row] = gateway.rows_when(1)
    assert (row.outcome, row.http_status) == ("backend_error", 200)
