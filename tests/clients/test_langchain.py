"""LangChain's ``ChatOpenAI`` has the conversation; its token counts are those of the ledger."""

from __future__ import annotations

import asyncio
from functools import reduce
from operator import add
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import DefaultAsyncHttpxClient

from tests.support.clients.conversation import (
    ANSWERS,
    FIRST_TURN,
    MODEL,
    QUESTION,
    READING_QUESTION,
    SECOND_TURN,
    TOOL_ANSWER,
    TOOL_RESULT,
    Reading,
    Seen,
    assert_ledger_agrees,
)
from tests.support.live import Gateway


@tool
def get_weather(city: str) -> str:
    """Current weather in a city"""
    return TOOL_RESULT


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


def test_an_asynchronous_stream_gives_the_same(gateway: Gateway) -> None:
    async def streamed() -> AIMessageChunk:
        async with DefaultAsyncHttpxClient() as http:
            model = chat(gateway, http_async_client=http)
            return whole([chunk async for chunk in model.astream(FIRST_TURN)])

    answer = asyncio.run(streamed())

    assert answer.content == ANSWERS[0]
    assert_ledger_agrees(gateway, [seen(answer, streamed=True)])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
def test_a_bound_tool_is_called_and_its_result_is_used(
    model: ChatOpenAI, gateway: Gateway, streamed: bool
) -> None:
    bound = model.bind_tools([get_weather])

    def ask(messages: list[Any]) -> AIMessage:
        if not streamed:
            return bound.invoke(messages)
        return whole(
            [chunk for chunk in bound.stream(messages) if isinstance(chunk, AIMessageChunk)]
        )

    first = ask([HumanMessage(QUESTION)])
    [call] = first.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    result = get_weather.invoke(call)
    assert isinstance(result, ToolMessage)
    second = ask([HumanMessage(QUESTION), first, result])

    assert second.content == TOOL_ANSWER
    assert_ledger_agrees(
        gateway,
        [
            seen(first, streamed=streamed, shape="tools"),
            seen(second, streamed=streamed, shape="tools"),
        ],
    )


@pytest.mark.parametrize(
    ("method", "shape"),
    [("json_schema", "json_schema"), ("function_calling", "tools"), ("json_mode", "json_object")],
)
def test_with_structured_output_answers_in_the_models_shape(
    model: ChatOpenAI, gateway: Gateway, method: Any, shape: str
) -> None:
    structured = model.with_structured_output(Reading, method=method, include_raw=True)

    question = READING_QUESTION
    if method == "json_mode":
        question = 'say: {"city": "Lyon", "degrees": 21, "note": null}'
    answer = structured.invoke(question)

    assert isinstance(answer, dict)
    assert answer["parsing_error"] is None
    assert (answer["parsed"].city, answer["parsed"].degrees) == ("Lyon", 21)
    assert_ledger_agrees(gateway, [seen(answer["raw"], streamed=False, shape=shape)])


def test_a_failure_in_the_middle_of_a_stream_reaches_the_caller(
    model: ChatOpenAI, gateway: Gateway
) -> None:
    chunks: list[AIMessageChunk] = []
    with pytest.raises(openai.APIError) as raised:
        chunks.extend(model.stream("[[sim tokens=20 fault=error_frame@3]] Go on."))

    assert raised.value.code == "backend_error"
    assert [row.outcome for row in gateway.rows_when(1)] == ["backend_error"]


def test_a_batch_is_one_row_for_each_answer(model: ChatOpenAI, gateway: Gateway) -> None:
    answers = model.batch([f"say: Number {number}." for number in range(8)])

    assert [answer.content for answer in answers] == [f"Number {each}." for each in range(8)]
    metered = {each.request_id: each.output for each in (seen(a, streamed=False) for a in answers)}
    rows = gateway.rows_when(8)
    assert metered == {row.request_id: row.backend_reported_output_tokens for row in rows}
