"""Probes how a server handles connections and disconnects, and the context length that it reports."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from inference.probe.chat import Model
from inference.probe.client import Closed, ErrorStatus, ProbeClient, ProbeError
from inference.probe.findings import Found
from inference.probe.replies import at, count_at, items_at, text_at
from inference.wire.dialects import KeepAlive, PrefixCache

_SETTLE_SECONDS: Final = 0.3
"""A server that closes a connection because an answer has ended does so within this time."""
_LONG: Final = 2000
_READ: Final = 3
_PROMPT_SECONDS: Final = 5.0


async def keep_alive(model: Model) -> Found[KeepAlive]:
    """Find out which connections can be used for a second request.

    The gateway itself learns that a server closes connections after streams, so only a server that
    closes them after whole answers too, without announcing it, needs the setting.
    """
    ask = model.asked("Say yes.", 1)
    first = await model.client.whole(ask, kept=True)
    after_whole = await _is_kept(model) or await _is_kept(model)
    await asyncio.sleep(_SETTLE_SECONDS)
    try:
        await model.client.stream(ask, kept=True)
    except Closed:
        await model.client.stream(ask, kept=True)
    after_stream = await _is_kept(model)
    if first.said_close:
        return Found(KeepAlive.AUTO, "it closes connections after answers, and says so")
    if not after_whole:
        return Found(KeepAlive.OFF, "it closes connections after whole answers without a word")
    if not after_stream:
        return Found(KeepAlive.AUTO, "kept after whole answers, closed after streams")
    return Found(KeepAlive.AUTO, "kept after whole answers and after streams")


async def _is_kept(model: Model) -> bool:
    """Whether the connection of the last answer can serve another request."""
    await asyncio.sleep(_SETTLE_SECONDS)
    try:
        return (await model.client.whole(model.asked("Say yes.", 1), kept=True)).reused
    except Closed:
        # The client had not yet noticed the close when it sent the request.
        return False


async def abort(model: Model, *, usual: float) -> Found[bool]:
    """Disconnect in the middle of a long stream, and measure when the next request is answered.

    ``usual``: the seconds that an answer of one token usually takes.
    """
    body = model.asked("Count from 1 to 500 in digits, with commas.", _LONG)
    seen = await model.client.stream(body, most_pieces=_READ)
    if not seen.disconnected:
        return Found(None, "the answer had ended before the client disconnected")
    try:
        whole = await model.client.whole(model.asked("Say yes.", 1))
    except ProbeError as error:
        return Found(False, f"after a disconnect the next request fails: {error}")
    words = f"after a disconnect the next answer took {whole.seconds:.2f} s"
    if whole.seconds > max(_PROMPT_SECONDS, 5 * usual):
        return Found(False, f"{words}: it seems to keep generating after the client disconnected")
    return Found(True, words)


_SALT: Final = "svc-probe-cache-salt-with-some-more-characters"
_FIRST_SALTED: Final = (0, 9)
"""The version of vLLM that brought ``cache_salt`` (pull request 17045)."""


async def prefix_cache(model: Model, *, listed: Any) -> Found[PrefixCache]:
    """Find out whether the server keeps the prompts of organizations apart by ``cache_salt``.

    An answer does not show it: most servers ignore fields that they do not know. ``listed`` is the
    model's entry in the server's list, where vLLM names itself.
    """
    try:
        await model.client.whole(model.asked("Say yes.", 1, cache_salt=_SALT))
    except ErrorStatus as refused:
        if not refused.is_about_the_request:
            raise
        said = refused.words or refused.status
        return Found(PrefixCache.SHARED, f"cache_salt is refused ({said})")
    if text_at(listed, "owned_by") != "vllm":
        return Found(None, "cache_salt is not refused, but nothing shows that it is used")
    if version := await _version(model.client):
        numbers = tuple(map(int, version.split(".")[:2]))
        if numbers < _FIRST_SALTED:
            return Found(PrefixCache.SHARED, f"vLLM {version} ignores cache_salt")
    return Found(PrefixCache.ORGANIZATION, "vLLM keeps organizations apart by cache_salt")


async def _version(client: ProbeClient) -> str:
    """The version that vLLM reports, such as ``0.11``; empty where it reports none."""
    try:
        answer = await client.get(f"{client.target.root}/version")
    except ProbeError:
        return ""
    found = re.match(r"\d{1,4}\.\d{1,4}", text_at(answer, "version"))
    return found[0] if found else ""


_LISTED: Final[tuple[tuple[str, ...], ...]] = (
    ("max_model_len",),  # vLLM, SGLang
    ("meta", "n_ctx"),  # llama.cpp
    ("loaded_context_length",),  # LM Studio
    ("context_length",),  # OpenRouter, Together
    ("context_window",),  # Groq
    ("max_context_length",),  # Mistral
)


async def context_length(client: ProbeClient, name: str, listed: Any) -> Found[int]:
    """Find the context length of the model ``name``, which should be loaded.

    It is the length for which the server is configured, not that of the weights: llama.cpp, Ollama
    and LM Studio load models with less. ``listed`` is the model's entry in the server's list.
    """
    for path in _LISTED:
        if (tokens := count_at(listed, *path)) is not None:
            return Found(tokens, f"GET /models says {'.'.join(path)}")
    for place, ask in _ELSEWHERE:
        try:
            tokens = await ask(client, name)
        except ProbeError:
            continue
        if tokens is not None:
            return Found(tokens, f"{place} says so")
    return Found(None, "the server does not report it")


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
