"""The valid members of a message, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases.chat_requests import CALL, INVALID_MESSAGES, USER, refusal, request, sent


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize(
    "content", ["", "text", [], [{"type": "text", "text": "a"}, {"type": "text", "text": ""}]]
)
def test_every_role_takes_a_string_or_content_parts(role: str, content: Any) -> None:
    message = {"role": role, "content": content, "name": "ann"}
    assert sent(request(messages=[message]))["messages"] == [message]


def test_a_tool_message_answers_a_call() -> None:
    message = {"role": "tool", "tool_call_id": "call_1", "content": "22 C"}
    assert sent(request(messages=[USER, message]))["messages"] == [USER, message]


def test_content_parts_of_other_types_are_passed_on_whole() -> None:
    image = {"type": "image_url", "image_url": {"url": "x", "detail": None}, "more": [1, None]}
    message = {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}
    assert sent(request(messages=[message]))["messages"] == [message]


@pytest.mark.parametrize(
    "said",
    [
        {"content": None, "tool_calls": [CALL]},
        {"tool_calls": [CALL]},
        {"content": None, "refusal": "No."},
        {"content": None, "reasoning_content": "Cut off while thinking"},
        {"content": "Yes.", "reasoning_content": "It is so.", "tool_calls": [CALL, CALL]},
    ],
)
def test_an_assistant_message_can_be_appended_as_received(said: dict[str, Any]) -> None:
    message = {"role": "assistant", **said}
    assert sent(request(messages=[USER, message]))["messages"] == [USER, message]


def test_an_assistant_message_of_a_server_that_writes_every_member_is_accepted() -> None:
    received: dict[str, Any] = {
        "role": "assistant", "content": "Hi", "refusal": None, "tool_calls": [], "audio": None,
        "annotations": [], "function_call": None, "reasoning_content": None,
    }  # fmt: skip
    body = sent(request(messages=[USER, received]))
    assert body["messages"][1] == {"role": "assistant", "content": "Hi"}


@pytest.mark.parametrize(("message", "param"), INVALID_MESSAGES)
def test_the_error_of_an_invalid_message_names_its_member(message: Any, param: str) -> None:
    error = refusal(messages=[USER, message])
    assert error.param == param
    assert error.message.startswith(f"'{param}' ")
