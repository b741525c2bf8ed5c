"""What a probe finds out about servers of each dialect, over real sockets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.probe.client import Target
from inference.probe.findings import ModelFindings, ServerFindings, fitting
from inference.probe.run import MOST_MODELS, probe
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from tests.support.model_servers.dialects import (
    LITE_LLM,
    LM_STUDIO,
    OLLAMA,
    REASONING,
    TRANSFORMERS,
    VLLM,
    VLLM_WITHOUT_PARSER,
    Dialect,
    serving,
)


async def found(dialect: Dialect, *models: str, **options: Any) -> ServerFindings:
    """What a probe finds of a server that speaks ``dialect``."""
    async with serving(dialect) as server:
        return await probe(Target(f"{server.root}/v1", seconds=20, **options), models)


async def only_model(dialect: Dialect) -> ModelFindings:
    (model,) = (await found(dialect)).models
    assert model.works
    return model


async def test_vllm() -> None:
    model = await only_model(VLLM)

    assert model.name == "/models/qwen"
    assert model.usage.value is True
    assert model.output_cap.value is OutputCapField.BOTH
    assert model.running_usage.value is RunningUsage.VLLM
    assert (model.tool_calling.value, model.structured_output.value) == (True, True)
    assert model.context_length.value == 4096
    assert model.abort.value is True


async def test_ollama_reads_one_name_of_the_cap_and_tells_the_context_it_was_loaded_with() -> None:
    model = await only_model(OLLAMA)

    assert model.output_cap.value is OutputCapField.BOTH
    assert model.output_cap.words == "max_tokens is obeyed, max_completion_tokens is ignored"
    assert model.running_usage.value is RunningUsage.NONE
    assert model.context_length.value == 8192
    assert "/api/ps" in model.context_length.words


async def test_ollama_without_a_loaded_model_tells_what_is_set() -> None:
    shown = {"POST /api/show": OLLAMA.elsewhere["POST /api/show"]}
    model = await only_model(replace(OLLAMA, elsewhere=shown))

    assert model.context_length.value == 2048


async def test_transformers_can_neither_call_nor_keep_to_a_schema_nor_tell_its_context() -> None:
    model = await only_model(TRANSFORMERS)

    assert (model.tool_calling.value, model.structured_output.value) == (False, False)
    assert (model.context_length.value, model.context_length.words) == (
        None,
        "the server does not report it",
    )
    assert "without [DONE]" in model.stream.words


async def test_lm_studio_calls_where_a_call_is_required_and_names_no_tool() -> None:
    model = await only_model(LM_STUDIO)

    assert model.tool_calling.value is True
    assert "tool_choice required" in model.tool_calling.words
    assert model.context_length.value == 16384


async def test_a_server_that_refuses_tool_choice_auto_is_no_server_for_tools() -> None:
    model = await only_model(VLLM_WITHOUT_PARSER)

    assert model.tool_calling.value is False
    assert "auto is not supported" in model.tool_calling.words


async def test_a_name_of_the_cap_that_is_refused_is_not_sent() -> None:
    model = await only_model(REASONING)

    assert model.output_cap.value is OutputCapField.MAX_COMPLETION_TOKENS
    assert (model.tool_calling.value, model.structured_output.value) == (True, True)
    assert model.context_length.value == 200_000


async def test_a_cap_that_no_name_sets_is_told_and_the_answer_is_left() -> None:
    model = await only_model(Dialect(obeyed=frozenset()))

    assert model.output_cap.value is None
    assert model.output_cap.words == "max_tokens is ignored, max_completion_tokens is ignored"


async def test_lite_llm_promises_what_all_deployments_of_a_name_take() -> None:
    assert (await only_model(LITE_LLM)).context_length.value == 16_000


async def test_llama_cpp_timings_are_found() -> None:
    assert (
        await only_model(Dialect(running="llama.cpp"))
    ).running_usage.value is RunningUsage.LLAMA_CPP


async def test_streams_without_figures_are_told() -> None:
    usage = (await only_model(Dialect(usage_on_streams=False))).usage

    assert (usage.value, usage.words) == (False, "not with streams: those cost nothing")


async def test_connections_that_are_kept() -> None:
    assert (await found(Dialect())).keep_alive.value is KeepAlive.AUTO


async def test_all_models_are_tried_and_one_that_cannot_chat_hides_no_other() -> None:
    models = [{"id": name} for name in ("embedder", "a:b", "/weights/c d")]
    server = await found(Dialect(models=models, chats=["a:b", "/weights/c d"]))

    assert [model.name for model in server.models] == ["embedder", "a:b", "/weights/c d"]
    assert [model.name for model in server.working] == ["a:b", "/weights/c d"]
    assert "does not support chat" in server.models[0].chat.words
    assert fitting(server).output_cap_field.value is OutputCapField.BOTH


async def test_a_long_list_is_tried_in_part_and_a_name_that_is_not_on_it_is_tried_all_the_same() -> (
    None
):
    models = [{"id": f"m{number}"} for number in range(MOST_MODELS + 4)]
    dialect = Dialect(models=models, chats=[])

    server = await found(dialect)
    assert len(server.models) == MOST_MODELS
    assert server.listing.words == f"{MOST_MODELS + 4} models; {MOST_MODELS} tried"
    assert [model.name for model in (await found(dialect, "other")).models] == ["other"]


async def test_names_that_no_deployment_can_have_are_left_out() -> None:
    models: list[Any] = [{"id": "a\x1b[2J"}, {"id": "x" * 201}, {"id": 7}, None, {"id": "good"}]

    assert (await found(Dialect(models=models))).listed == ["good"]


@pytest.mark.parametrize(
    ("given", "api", "address"),
    [
        ("", "/v1", "/v1"),
        ("/", "/v1", "/v1"),
        ("/v1/", "/v1", "/v1"),
        ("/v1/chat/completions", "/v1", "/v1"),
        ("/v1", "", ""),
        ("/openai", "/openai/v1", "/openai/v1"),
        ("/v1beta/openai", "/v1beta/openai", "/v1beta/openai"),
    ],
)
async def test_an_address_is_mended(given: str, api: str, address: str) -> None:
    async with serving(Dialect(api=api, chats=[])) as server:
        seen = await probe(Target(server.root + given, seconds=20))

    assert seen.connection.value is True
    assert seen.base_url == server.root + address


async def test_a_key_and_headers_go_with_every_request_and_extra_fields_with_every_chat() -> None:
    dialect = Dialect(key="right", header="x-provider")
    headers = {"Authorization": "Bearer right", "x-provider": "p"}
    async with serving(dialect) as server:
        target = Target(server.root, headers, {"top_k": 40}, has_key=True, seconds=20)
        (model,) = (await probe(target)).models

    assert model.works
    assert {body["top_k"] for body in server.bodies} == {40}
    assert "right" not in repr(target)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "it requires an API key (401)"),
        ({"Authorization": "Bearer wrong"}, "it refuses the key (401)"),
    ],
)
async def test_a_wrong_key_is_told_as_such(headers: dict[str, str], words: str) -> None:
    seen = await found(Dialect(key="right"), headers=headers, has_key=bool(headers))

    assert seen.connection.value is False
    assert words in seen.connection.words
    assert "Incorrect API key" in seen.connection.words
    assert seen.models == []
