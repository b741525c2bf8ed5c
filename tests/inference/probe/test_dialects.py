"""What a probe finds out about servers of each dialect, over real sockets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.probe.client import Target
from inference.probe.findings import ServerFindings, fitting
from inference.probe.run import MOST_MODELS, probe
from inference.wire.dialects import KeepAlive, OutputCapField, PrefixCache, RunningUsage
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


KNOWN: dict[str, tuple[Dialect, dict[str, Any], dict[str, str]]] = {
    "vLLM": (
        VLLM,
        {
            "usage": True,
            "output_cap": OutputCapField.BOTH,
            "running_usage": RunningUsage.VLLM,
            "tool_calling": True,
            "structured_output": True,
            "context_length": 4096,
            "abort": True,
        },
        {},
    ),
    "Ollama, as it was loaded": (
        OLLAMA,
        {
            "output_cap": OutputCapField.BOTH,
            "running_usage": RunningUsage.NONE,
            "context_length": 8192,
        },
        {
            "output_cap": "max_tokens is obeyed, max_completion_tokens is ignored",
            "context_length": "/api/ps",
        },
    ),
    "Ollama without a loaded model": (
        replace(OLLAMA, elsewhere={"POST /api/show": OLLAMA.elsewhere["POST /api/show"]}),
        {"context_length": 2048},
        {},
    ),
    "Transformers": (
        TRANSFORMERS,
        {"tool_calling": False, "structured_output": False, "context_length": None},
        {"context_length": "the server does not report it", "stream": "without [DONE]"},
    ),
    "LM Studio, which takes no name of a tool": (
        LM_STUDIO,
        {"tool_calling": True, "context_length": 16384},
        {"tool_calling": "tool_choice required"},
    ),
    "tool_choice auto is refused": (
        VLLM_WITHOUT_PARSER,
        {"tool_calling": False},
        {"tool_calling": "auto is not supported"},
    ),
    "a name of the cap is refused": (
        REASONING,
        {
            "output_cap": OutputCapField.MAX_COMPLETION_TOKENS,
            "tool_calling": True,
            "structured_output": True,
            "context_length": 200_000,
        },
        {},
    ),
    "no name sets the cap": (
        Dialect(obeyed=frozenset()),
        {"output_cap": None},
        {"output_cap": "max_tokens is ignored, max_completion_tokens is ignored"},
    ),
    "LiteLLM, what all deployments take": (LITE_LLM, {"context_length": 16_000}, {}),
    "llama.cpp": (Dialect(running="llama.cpp"), {"running_usage": RunningUsage.LLAMA_CPP}, {}),
    "streams without usage": (
        Dialect(usage_on_streams=False),
        {"usage": False},
        {"usage": "not with streams: those cost nothing"},
    ),
}
"""Servers, what is found of each, and words that say so."""


@pytest.mark.parametrize("name", KNOWN)
async def test_what_a_probe_finds_of_a_server(name: str) -> None:
    dialect, values, words = KNOWN[name]

    (model,) = (await found(dialect)).models

    assert model.works
    assert model.name == dialect.models[0]["id"]
    assert {each: getattr(model, each).value for each in values} == values
    for each, said in words.items():
        assert said in getattr(model, each).words


REFUSES_SALT = frozenset({"cache_salt"})
SALTED: dict[str, tuple[Dialect, PrefixCache | None, str]] = {
    "vLLM": (VLLM, PrefixCache.ORGANIZATION, "vLLM keeps organizations apart"),
    "vLLM of a version that knows it": (
        replace(VLLM, elsewhere={"GET /version": {"version": "0.10.2"}}),
        PrefixCache.ORGANIZATION,
        "",
    ),
    "vLLM of a version that ignores it": (
        replace(VLLM, elsewhere={"GET /version": {"version": "0.8.5.post1"}}),
        PrefixCache.SHARED,
        "vLLM 0.8 ignores cache_salt",
    ),
    "vLLM whose engine refuses it": (
        replace(VLLM, refused=REFUSES_SALT),
        PrefixCache.SHARED,
        "cache_salt is refused (Unsupported parameter: 'cache_salt')",
    ),
    "a hosted API that refuses it": (
        Dialect(refused=REFUSES_SALT),
        PrefixCache.SHARED,
        "cache_salt is refused",
    ),
    "a server that ignores what it does not know": (OLLAMA, None, "nothing shows that it is used"),
}


@pytest.mark.parametrize("name", SALTED)
async def test_whether_a_server_keeps_organizations_apart(name: str) -> None:
    dialect, value, words = SALTED[name]

    server = await found(dialect)

    assert fitting(server).prefix_cache.value is value
    assert words in fitting(server).prefix_cache.words


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
