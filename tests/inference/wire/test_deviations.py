"""Deviations of model servers whose meaning is clear are normalized."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from inference.wire.answers import decode_chunk, decode_completion
from inference.wire.dialects import is_flat_error


def a_call(arguments: Any) -> list[dict[str, Any]]:
    return [{"id": "c", "function": {"name": "find", "arguments": arguments}}]


@pytest.mark.parametrize(
    ("sent", "read"),
    [(None, ""), ({}, "{}"), ({"a": [1, "ä"]}, '{"a":[1,"ä"]}'), ('{"a": ', '{"a": ')],
)
def test_arguments_are_read_as_text(sent: Any, read: str) -> None:
    message = {"tool_calls": a_call(sent)}
    whole = decode_completion(json.dumps({"choices": [{"message": message}]}).encode())
    streamed = decode_chunk(json.dumps({"choices": [{"delta": message}]}).encode())

    assert whole.choices is not None
    assert whole.choices[0].message.tool_calls is not None
    assert whole.choices[0].message.tool_calls[0].function.arguments == read
    assert streamed.choices is not None
    assert streamed.choices[0].delta.tool_calls is not None
    function = streamed.choices[0].delta.tool_calls[0].function
    assert function is not None
    assert (function.arguments or "") == read


@pytest.mark.parametrize("arguments", [7, [], True])
def test_arguments_of_any_other_type_are_not_an_answer(arguments: Any) -> None:
    body = json.dumps({"choices": [{"message": {"tool_calls": a_call(arguments)}}]}).encode()

    with pytest.raises(msgspec.ValidationError):
        decode_completion(body)


@pytest.mark.parametrize(
    "body",
    [b"[]", b"7", b'{"choices": 7}', b'{"choices": [7]}', b'{"choices": [{"delta": 7}]}',
     b'{"choices": [{"delta": {"tool_calls": [7]}}]}',
     b'{"choices": [{"delta": {"tool_calls": [{"function": 7}]}}]}'],
)  # fmt: skip
def test_an_invalid_chunk_stays_invalid(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_chunk(body)


@pytest.mark.parametrize(
    "said",
    [
        {"object": "error", "message": "no", "type": "BadRequestError", "param": None, "code": 400},
        {"code": 500, "message": "no", "type": "server_error"},
    ],
)
def test_an_error_outside_an_error_member_is_recognized(said: dict[str, Any]) -> None:
    assert is_flat_error(json.dumps(said).encode())


@pytest.mark.parametrize(
    "said",
    [b"{}", b'{"choices": []}', b'{"message": "loading"}', b'{"usage": {}}', b"[]", b"7", b"{"],
)
def test_an_answer_without_signs_of_an_error_is_not_one(said: bytes) -> None:
    assert not is_flat_error(said)
