"""The field table of ``POST /v1/chat/completions``, row by row, and the messages of refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from core.errors import InvalidField, UnsupportedParameter
from inference.wire import ChatRequest
from inference.wire.wording import EXPECTED
from tests.support.cases.chat_requests import (
    ACCEPTED,
    INVALID_MESSAGES,
    INVALID_NESTED,
    MINIMAL,
    NEEDS,
    REFUSED,
    USER,
    refusal,
    request,
    sent,
)


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(field, value, id=f"{field}={str(value)[:40]}")
        for field, values in table.items()
        for value in values
    ]


def test_the_tables_of_this_test_cover_every_field_that_is_modelled() -> None:
    assert set(ACCEPTED) == set(REFUSED) == set(ChatRequest.__struct_fields__)


@pytest.mark.parametrize(("field", "value"), cases(ACCEPTED))
def test_a_value_inside_the_rule_is_accepted_and_reaches_the_backend(
    field: str, value: Any
) -> None:
    body = sent(request(**NEEDS.get(field, {}), **{field: value}))
    expected = {"model": "demo-8b-awq", "stream_options": {"include_usage": True}}.get(field, value)
    assert body.get(field) == (expected if expected != [] else None)


@pytest.mark.parametrize(("field", "value"), cases(REFUSED))
def test_a_value_outside_the_rule_is_refused_by_the_name_of_its_field(
    field: str, value: Any
) -> None:
    error = refusal(**NEEDS.get(field, {}), **{field: value})
    assert (error.status, error.param, error.code) == (400, field, None)
    assert error.message.startswith(f"'{field}' ")
    assert EXPECTED[field] in error.message


@pytest.mark.parametrize("field", sorted(set(ACCEPTED) - {"model", "messages"}))
def test_an_explicit_null_of_an_optional_field_means_absent(field: str) -> None:
    assert sent(request(**{field: None})) == {**MINIMAL, "model": "demo-8b-awq"}


@pytest.mark.parametrize("field", ["model", "messages"])
def test_a_missing_required_field_is_named(field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        ChatRequest.from_fields({name: MINIMAL[name] for name in MINIMAL if name != field})
    assert caught.value.param == field
    assert caught.value.message.startswith(f"'{field}' is required.")


@pytest.mark.parametrize(("fields", "param"), INVALID_NESTED)
def test_a_nested_field_that_is_wrong_is_named_by_its_path(
    fields: dict[str, Any], param: str
) -> None:
    error = refusal(**fields)
    assert (error.param, error.code) == (param, None)
    assert error.message.startswith(f"'{param}' ")


def test_no_message_leaks_the_validator_or_what_was_sent() -> None:
    secret = "s3cr3t"
    bad: list[dict[str, Any]] = [
        {**NEEDS.get(field, {}), field: value} for field in REFUSED for value in REFUSED[field]
    ]
    bad += [fields for fields, _ in INVALID_NESTED]
    bad += [{"messages": [USER, message]} for message, _ in INVALID_MESSAGES]
    bad += [{"tool_choice": secret}, {"messages": [{"role": secret}]}, {"temperature": secret}]
    for fields in bad:
        message = refusal(**fields).message
        assert secret not in message
        assert message.endswith(".")
        for foreign in (
            *("`", "$", "Expected", "Object missing", "Invalid", "| null", "regex", "enum"),
        ):
            assert foreign not in message


def test_messages_say_what_is_expected_what_was_sent_and_what_to_do() -> None:
    assert refusal(temperature="hot").message == (
        "'temperature' must be a number between 0 and 2. A string was sent. "
        "Correct it or leave it out."
    )
    assert refusal(max_tokens=1.5).message == (
        "'max_tokens' must be a positive integer of at most 64 bits. A number with a fraction was sent. "
        "Correct it or leave it out."
    )
    assert refusal(messages=[{"role": "tool", "content": "x"}]).message == (
        "'messages[0].tool_call_id' is required. It must be a string: the 'id' of the tool call "
        "that is answered."
    )
    assert refusal(messages=[{"role": "bot", "content": "x"}]).message == (
        "'messages[0].role' must be 'system', 'developer', 'user', 'assistant' or 'tool'. "
        "Correct it."
    )


def modelled_paths(struct: type, prefix: str = "") -> Iterator[str]:
    """Yield every path of the structs, as ``EXPECTED`` spells it."""
    config = struct.__struct_config__  # type: ignore[attr-defined]
    if config.tag_field:
        yield f"{prefix}{config.tag_field}"
    for name, hint in get_type_hints(struct).items():
        yield f"{prefix}{name}"
        yield from nested_paths(hint, f"{prefix}{name}")


def nested_paths(hint: Any, path: str) -> Iterator[str]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield from modelled_paths(hint, f"{path}.")
    elif get_origin(hint) is list:
        yield f"{path}[]"
        yield from nested_paths(get_args(hint)[0], f"{path}[]")
    elif get_origin(hint) is not dict:
        for member in get_args(hint):
            yield from nested_paths(member, path)


def test_every_modelled_field_has_a_description() -> None:
    inside_parts = {"messages[].content[].type", "messages[].content[].text"}
    assert set(modelled_paths(ChatRequest)) | inside_parts == set(EXPECTED)


@pytest.mark.parametrize("field", ["max_completion_tokens", "max_tokens", "seed", "top_logprobs"])
def test_an_integer_may_be_written_with_a_fraction_of_zero(field: str) -> None:
    body = sent(request(**{field: 2.0}))

    assert (body[field], type(body[field])) == (2, int)
    assert refusal(**{field: 1e300}).param == field


def test_two_choices_are_unsupported_however_the_number_is_written() -> None:
    with pytest.raises(UnsupportedParameter):
        request(n=2.0)
    assert sent(request(n=1.0))["n"] == 1
    assert refusal(n=1.5).code is None
