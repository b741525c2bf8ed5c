"""The errors for invalid bodies, and how the model is read from a body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import InvalidField
from inference.wire import MAX_NESTING, model_of, parse_body


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b"\xff\xfe{\x00}\x00", "byte order mark"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"\xff": 1}', "UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "UTF-8"),
        (b'{"a": NaN}', "at byte 6: NaN and Infinity are not JSON"),
        (b'{"a": Infinity}', "NaN and Infinity are not JSON"),
        (b'{"a": -Infinity}', "NaN and Infinity are not JSON"),
        (b'{"a": "\\ud800 and more text"}', "half of a surrogate pair"),
        (b'{"a": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a": "\\udc00\\ud800"}', "half of a surrogate pair"),
        (b'{"a": 1e400}', "out of range"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "out of range"),
        (b'{"a": 01}', "as JSON writes numbers"),
        (b'{"a": 1}}', "follows the JSON object"),
        (b'{"a": 1,}', "comma with nothing after it"),
        (b"{'a': 1}", "not in double quotes"),
        (b'{"a": "\\x"}', "escape that JSON does not have"),
        (b'{"a": "\x01"}', "does not allow there"),
        (b'{"a": [1', "ends too early"),
        (b"[" * 200_000, "nests deeper than 64 levels"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"null", "must be a JSON object"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused_with_our_message(
    body: bytes, says: str
) -> None:
    with pytest.raises(InvalidField) as caught:
        parse_body(body)
    error = caught.value
    assert (error.status, error.param, error.code) == (400, None, None)
    assert says in error.message
    assert "truncated" not in error.message
    assert "$" not in error.message


def nested(depth: int) -> bytes:
    return b'{"a": ' * (depth - 1) + b"[]" + b"}" * (depth - 1)


def test_the_deepest_accepted_body_nests_64_levels() -> None:
    assert parse_body(nested(MAX_NESTING))
    with pytest.raises(InvalidField, match="64 levels"):
        parse_body(nested(MAX_NESTING + 1))


def test_a_wide_body_and_brackets_in_text_are_not_nesting() -> None:
    wide = {"a": [{"b": [[]]}] * 500, "text": "[{" * 500}
    assert parse_body(json.dumps(wide).encode()) == wide


def test_of_a_repeated_name_the_last_value_wins() -> None:
    assert parse_body(b'{"model": "a", "model": "b"}') == {"model": "b"}


@pytest.mark.parametrize(
    "fields", [{}, {"model": None}, {"model": ""}, {"model": 5}, {"model": []}]
)
def test_a_request_without_a_model_names_the_field(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidField) as caught:
        model_of(fields)
    assert caught.value.param == "model"
    assert "GET /v1/models" in caught.value.message


def test_the_model_is_read_before_anything_else_is_validated() -> None:
    assert model_of({"model": "acme/demo-8b", "messages": "nonsense"}) == "acme/demo-8b"
