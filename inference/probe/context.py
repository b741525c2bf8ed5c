"""Finds the context length of a model, where its server reports it.

It is the length for which the server is configured, not that of the weights: llama.cpp, Ollama and
LM Studio load models with less.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from inference.probe.client import NoAnswer, ProbeClient
from inference.probe.findings import Found
from inference.probe.replies import at, count_at, items_at, text_at

_LISTED: Final[tuple[tuple[str, ...], ...]] = (
    ("max_model_len",),  # vLLM, SGLang
    ("meta", "n_ctx"),  # llama.cpp
    ("loaded_context_length",),  # LM Studio
    ("context_length",),  # OpenRouter, Together
    ("context_window",),  # Groq
    ("max_context_length",),  # Mistral
)


async def context_length(client: ProbeClient, name: str, listed: Any) -> Found[int]:
    """Find the context length of the model ``name``, which should be loaded; ``listed`` is its
    entry in the server's list of models."""
    for path in _LISTED:
        if (tokens := count_at(listed, *path)) is not None:
            return Found(tokens, f"GET /models says {'.'.join(path)}")
    for place, ask in _ELSEWHERE:
        try:
            tokens = await ask(client, name)
        except NoAnswer:
            continue
        if tokens is not None:
            return Found(tokens, f"{place} says so")
    return Found(None, "the server does not tell")


async def _llama(client: ProbeClient, name: str) -> int | None:
    answer = await client.get(f"{client.target.root}/props")
    return count_at(answer, "default_generation_settings", "n_ctx")


async def _ollama_loaded(client: ProbeClient, name: str) -> int | None:
    answer = await client.get(f"{client.target.root}/api/ps")
    for each in items_at(answer, "models"):
        if text_at(each, "name").removesuffix(":latest") == name.removesuffix(":latest"):
            return count_at(each, "context_length")
    return None


async def _ollama_set(client: ProbeClient, name: str) -> int | None:
    answer = await client.post(f"{client.target.root}/api/show", {"model": name})
    found = re.search(r"^num_ctx\s+(\d{1,9})\s*$", text_at(answer, "parameters"), re.MULTILINE)
    return int(found[1]) if found else None


async def _lm_studio(client: ProbeClient, name: str) -> int | None:
    address = f"{client.target.root}/api/v0/models/{quote(name, safe='/')}"
    return count_at(await client.get(address), "loaded_context_length")


async def _sglang(client: ProbeClient, name: str) -> int | None:
    return count_at(await client.get(f"{client.target.root}/get_server_info"), "context_length")


async def _tgi(client: ProbeClient, name: str) -> int | None:
    return count_at(await client.get(f"{client.target.root}/info"), "max_total_tokens")


async def _lite_llm(client: ProbeClient, name: str) -> int | None:
    answer = await client.get(f"{client.target.root}/model/info")
    found = [
        count_at(each, "model_info", "max_input_tokens")
        for each in items_at(answer, "data")
        if at(each, "model_name") == name
    ]
    told = [tokens for tokens in found if tokens is not None]
    # A name may stand for several deployments: take the smallest.
    return min(told) if told and len(told) == len(found) else None


_ELSEWHERE: Final[tuple[tuple[str, Callable[[ProbeClient, str], Awaitable[int | None]]], ...]] = (
    ("llama.cpp's GET /props", _llama),
    ("Ollama's GET /api/ps", _ollama_loaded),
    ("Ollama's POST /api/show (num_ctx)", _ollama_set),
    ("LM Studio's GET /api/v0/models", _lm_studio),
    ("SGLang's GET /get_server_info", _sglang),
    ("TGI's GET /info", _tgi),
    ("LiteLLM's GET /model/info (max_input_tokens)", _lite_llm),
)
