"""Any body becomes a request or a refusal, and never another error."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core.errors import ApiError
from inference.wire import ChatRequest, model_of, parse_body
from tests.support.cases.chat_requests import (
    ACCEPTED,
    INVALID_MESSAGES,
    MINIMAL,
    REFUSED,
    TOOL,
    USER,
)

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
LIKELY = st.sampled_from(
    [value for values in (*ACCEPTED.values(), *REFUSED.values()) for value in values]
)
MESSAGES = st.lists(
    st.sampled_from([USER, *(message for message, _ in INVALID_MESSAGES)]) | JSON, max_size=3
)
ANY_FIELDS = st.fixed_dictionaries(
    {"model": st.just("m") | JSON, "messages": st.just([USER]) | MESSAGES | JSON},
    optional={field: LIKELY | JSON for field in ACCEPTED if field not in MINIMAL},
)
ONE_FIELD = st.builds(
    lambda field, value: {**MINIMAL, field: value}, st.sampled_from(sorted(ACCEPTED)), LIKELY | JSON
)
"""One field at a time, so that every field is tested and not only the first wrong one."""

CONTENT = st.text() | st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, st.text())
    | st.builds(
        lambda whole: {**whole, "type": "image_url"}, st.dictionaries(st.text(), JSON, max_size=3)
    ),
    max_size=3,
)
VALID_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant"]), "content": CONTENT},
    optional={"name": st.none() | st.text()},
)
VALID_FIELDS = st.fixed_dictionaries(
    {
        "model": st.text(min_size=1),
        "messages": st.lists(VALID_MESSAGE, min_size=1, max_size=3),
        "tools": st.just([TOOL]),
        "logprobs": st.just(True),
    },
    optional={
        field: st.sampled_from([*values, None])
        for field, values in ACCEPTED.items()
        if field not in {*MINIMAL, "tools", "logprobs"}
    },
)


def outcome(body: bytes) -> ChatRequest | ApiError:
    """Return the request, or the refusal of the contract; any other exception is raised."""
    try:
        fields = parse_body(body)
        model_of(fields)
        return ChatRequest.from_fields(fields)
    except ApiError as error:
        return error


@given(ANY_FIELDS | ONE_FIELD)
def test_any_fields_are_a_request_or_a_400(fields: dict[str, Any]) -> None:
    chat = outcome(json.dumps(fields).encode())
    assert isinstance(chat, ChatRequest) or (chat.status == 400 and chat.param)


@given(VALID_FIELDS)
def test_an_accepted_request_survives_the_way_to_the_backend(fields: dict[str, Any]) -> None:
    chat = ChatRequest.from_fields(parse_body(json.dumps(fields).encode()))
    body = chat.backend_body(chat.model)
    again = ChatRequest.from_fields(parse_body(body))
    again.stream_options = chat.stream_options
    again.max_tokens, again.max_completion_tokens = chat.max_tokens, chat.max_completion_tokens
    assert again == chat
    assert again.messages == chat.messages
    assert [message["content"] for message in fields["messages"]] == [
        message.content for message in again.messages
    ]
