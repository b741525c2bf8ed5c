"""openai-python, sync and async, has the conversation; the ledger has the same one."""

from __future__ import annotations

import json

import pytest

from tests.support.clients.conversation import (
    ANSWERS,
    FIRST_TURN,
    QUESTION,
    READING_QUESTION,
    SECOND_TURN,
    TOOL,
    TOOL_ANSWER,
    TOOL_RESULT,
    Reading,
    assert_ledger_agrees,
    city_tool,
    message_of,
    seen_stream,
    seen_whole,
    text_of,
)
from tests.support.clients.openai_python import ChatClient, asked
from tests.support.live import Gateway


def test_the_catalog_is_listed_and_each_entry_is_found_by_its_id_with_a_slash(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    ours = set(gateway.models.values())
    models = [model for model in chat_client.models() if model.id in ours]

    assert {model.id for model in models} == ours
    for model in models:
        assert chat_client.model(model.id) == model
        assert (model.object, model.owned_by) == ("model", "svc")
        assert model.model_dump()["lifecycle"]["status"] == "active"


@pytest.mark.walk
def test_a_streamed_conversation_of_two_turns_is_two_successes(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    first = chat_client.stream(asked(FIRST_TURN))
    messages = [*asked(FIRST_TURN), message_of(first), {"role": "user", "content": SECOND_TURN}]
    second = chat_client.stream(messages)

    assert (text_of(first), text_of(second)) == ANSWERS
    seen = [seen_stream(first), seen_stream(second)]
    assert seen[1].input > seen[0].input + seen[0].output
    assert_ledger_agrees(gateway, seen)


def test_a_conversation_of_whole_answers_takes_the_message_back_as_received(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    first = chat_client.ask(asked(FIRST_TURN))
    second = chat_client.ask(
        [*asked(FIRST_TURN), first.choices[0].message, {"role": "user", "content": SECOND_TURN}]
    )

    assert (first.choices[0].message.content, second.choices[0].message.content) == ANSWERS
    assert_ledger_agrees(gateway, [seen_whole(first), seen_whole(second)])


@pytest.mark.parametrize("model", ["acme/demo-8b", "acme/plain-8b"])
@pytest.mark.parametrize("asks", [None, True, False], ids=["silent", "wanted", "unwanted"])
def test_usage_is_in_the_last_chunk_only_and_comes_whatever_the_client_asks_for(
    chat_client: ChatClient, gateway: Gateway, model: str, asks: bool | None
) -> None:
    fields = {} if asks is None else {"stream_options": {"include_usage": asks}}

    *chunks, last = chat_client.stream(asked(FIRST_TURN), model=model, **fields)

    assert [chunk.usage for chunk in chunks] == [None] * len(chunks)
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens
    assert len({chunk.id for chunk in (*chunks, last)}) == 1
    assert {chunk.model for chunk in (*chunks, last)} == {model}
    assert_ledger_agrees(gateway, [seen_stream([*chunks, last])])


def test_a_tool_call_round_trip_of_whole_answers(chat_client: ChatClient, gateway: Gateway) -> None:
    first = chat_client.ask(asked(QUESTION), tools=[TOOL])
    message = first.choices[0].message

    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    assert message.tool_calls is not None
    [call] = message.tool_calls
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments)["city"] == "Paris"

    result = {"role": "tool", "tool_call_id": call.id, "content": TOOL_RESULT}
    second = chat_client.ask([*asked(QUESTION), message, result], tools=[TOOL])

    assert second.choices[0].message.content == TOOL_ANSWER
    assert_ledger_agrees(gateway, [seen_whole(first, "tools"), seen_whole(second, "tools")])


def test_a_tool_call_round_trip_of_streams(chat_client: ChatClient, gateway: Gateway) -> None:
    first = chat_client.stream(asked(QUESTION), tools=[TOOL])
    message = message_of(first)

    [call] = message["tool_calls"]
    assert (call["type"], call["function"]["name"]) == ("function", "get_weather")
    assert json.loads(call["function"]["arguments"])["city"] == "Paris"
    assert message["content"] is None
    assert first[-2].choices[0].finish_reason == "tool_calls"

    result = {"role": "tool", "tool_call_id": call["id"], "content": TOOL_RESULT}
    second = chat_client.stream([*asked(QUESTION), message, result], tools=[TOOL])

    assert text_of(second) == TOOL_ANSWER
    assert_ledger_agrees(gateway, [seen_stream(first, "tools"), seen_stream(second, "tools")])


@pytest.mark.parametrize("said", ["Hello.", ""])
def test_text_from_a_stream_with_tools_attached_is_a_string_even_when_empty(
    chat_client: ChatClient, gateway: Gateway, said: str
) -> None:
    chunks = chat_client.stream(asked(f"say: {said}"), tools=[TOOL])

    assert message_of(chunks) == {"role": "assistant", "content": said}
    again = [*asked(FIRST_TURN), message_of(chunks), *asked(SECOND_TURN)]
    assert text_of(chat_client.stream(again)) == ANSWERS[1]


def test_parallel_tool_calls_keep_their_own_arguments(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    chunks = chat_client.stream(
        asked("Call get_weather for Paris, get_time for Rome"), tools=[TOOL, city_tool("get_time")]
    )

    calls = message_of(chunks)["tool_calls"]
    assert [call["function"]["name"] for call in calls] == ["get_weather", "get_time"]
    assert len({call["id"] for call in calls}) == 2
    assert all(json.loads(call["function"]["arguments"])["city"] for call in calls)
    assert_ledger_agrees(gateway, [seen_stream(chunks, "tools")])


def test_a_pydantic_model_is_answered_by_an_instance_of_it(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    completion = chat_client.parse(asked(READING_QUESTION), Reading)

    reading = completion.choices[0].message.parsed
    assert reading is not None
    assert reading.city == "Lyon"
    assert reading.degrees == 21
    assert_ledger_agrees(gateway, [seen_whole(completion, "json_schema")])


def test_the_stream_helper_parses_while_it_streams(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    events, completion = chat_client.helper(asked(READING_QUESTION), response_format=Reading)

    kinds = [event.type for event in events]
    assert {"chunk", "content.delta", "content.done"} <= set(kinds)
    done = next(event for event in events if event.type == "content.done")
    assert done.parsed == Reading.model_validate_json(completion.choices[0].message.content or "")
    chunks = [event.chunk for event in events if event.type == "chunk"]
    assert completion.usage == chunks[-1].usage
    assert_ledger_agrees(gateway, [seen_stream(chunks, "json_schema")])


def test_the_stream_helper_puts_tool_calls_together(
    chat_client: ChatClient, gateway: Gateway
) -> None:
    tool = {**TOOL, "function": {**TOOL["function"], "strict": True}}
    events, completion = chat_client.helper(asked(QUESTION), tools=[tool])

    done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert [event.name for event in done] == ["get_weather"]
    assert completion.choices[0].finish_reason == "tool_calls"
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "function"
    assert json.loads(calls[0].function.arguments) == json.loads(done[0].arguments)
    chunks = [event.chunk for event in events if event.type == "chunk"]
    assert_ledger_agrees(gateway, [seen_stream(chunks, "tools")])
