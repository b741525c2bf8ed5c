"""LangChain's ``ChatOpenAI`` has the conversation; its token counts are those of the ledger."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_openai import ChatOpenAI

from tests.support.clients.conversation import (
    ANSWERS,
    FIRST_TURN,
    MODEL,
    SECOND_TURN,
    Seen,
    assert_ledger_agrees,
)
from tests.support.live import Gateway


def chat(gateway: Gateway, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **{
            "model": MODEL,
            "base_url": gateway.base_url,
            "api_key": gateway.key,
            "max_retries": 0,
            "include_response_headers": True,
            **options,
        }
    )


@pytest.fixture(params=[None, True], ids=["usage_unasked", "usage_asked"])
def model(request: pytest.FixtureRequest, gateway: Gateway) -> ChatOpenAI:
    """Make a model with the default ``stream_usage`` of a custom base URL, and one with it on.

    Never closed: LangChain keeps one HTTP client for every model of the process.
    """
    return chat(gateway, stream_usage=request.param)


def seen(message: AIMessage, *, streamed: bool, shape: str = "chat") -> Seen:
    """Convert an answer of LangChain."""
    usage = message.usage_metadata
    assert usage is not None
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    metadata = message.response_metadata
    return Seen(
        metadata["headers"]["x-request-id"],
        metadata["model_name"],
        usage["input_tokens"],
        usage["output_tokens"],
        streamed,
        shape,
    )


def whole(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    """Add up the chunks as LangChain's documentation does."""
    return reduce(add, chunks)


@pytest.mark.walk
def test_a_conversation_of_two_turns(model: ChatOpenAI, gateway: Gateway) -> None:
    first = model.invoke(FIRST_TURN)
    second = model.invoke([HumanMessage(FIRST_TURN), first, HumanMessage(SECOND_TURN)])

    assert (first.content, second.content) == ANSWERS
    assert_ledger_agrees(gateway, [seen(first, streamed=False), seen(second, streamed=False)])


def test_usage_of_a_stream_is_not_counted_twice(model: ChatOpenAI, gateway: Gateway) -> None:
    chunks = list(model.stream(FIRST_TURN))

    assert len(chunks) > 3
    answer = whole(chunks)
    assert answer.content == ANSWERS[0]
    assert_ledger_agrees(gateway, [seen(answer, streamed=True)])


def test_a_failure_in_the_middle_of_a_stream_reaches_the_caller(
    model: ChatOpenAI, gateway: Gateway
) -> None:
    chunks: list[AIMessageChunk] = []
    with pytest.raises(openai.APIError) as raised:
        chunks.extend(model.stream("[[sim tokens=20 fault=error_frame@3]] Go on."))

    assert raised.value.code == "backend_error"
    assert [row.outcome for row in gateway.rows_when(1)] == ["backend_error"]
