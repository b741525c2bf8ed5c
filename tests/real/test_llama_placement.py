"""Turns of conversations go to the llama.cpp server that has them in its cache; its own counts show it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.real.servers.llama import LlamaServer, running_llama
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish

CONVERSATIONS = 5
"""An odd number, so that requests that take turns between two servers find each turn on the wrong one."""
TURNS = 4


@pytest.fixture(scope="module")
def llamas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LlamaServer]]:
    """Two servers that nothing was sent to."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(running_llama(tmp_path_factory.mktemp("llama"), "So it is."))
            for _ in range(2)
        ]


def ask(gateway: Gateway, model: str, messages: list[dict[str, str]]) -> tuple[int, int]:
    """Add an answer to ``messages``; return the tokens of its prompt, and those that were cached."""
    body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 24}
    answer = gateway.post(body, timeout=120)
    assert answer.status_code == 200
    messages.append(answer.json()["choices"][0]["message"])
    usage = answer.json()["usage"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def test_later_turns_are_answered_from_the_cache_that_has_them(
    gateway: Gateway, llamas: list[LlamaServer]
) -> None:
    backends = [backend(gateway, base_url=each.base_url, first_byte_seconds=60) for each in llamas]
    model = publish(gateway, *backends).identifier
    before = [each.counters().prompt_tokens for each in llamas]
    conversations: list[list[dict[str, str]]] = [[] for _ in range(CONVERSATIONS)]
    prompts: list[list[int]] = [[] for _ in range(CONVERSATIONS)]

    def begin(number: int) -> None:
        text = f"{number}, 0: " + f"words of {number} " * 120
        conversations[number].append({"role": "user", "content": text})
        prompts[number].append(ask(gateway, model, conversations[number])[0])

    with ThreadPoolExecutor(CONVERSATIONS) as pool:
        # At once, so that each server gets some; idle ones would be chosen by a hash alone.
        list(pool.map(begin, range(CONVERSATIONS)))
    for turn in range(1, TURNS):
        for number, messages in enumerate(conversations):
            text = f"{number}, {turn}: " + f"words of {number} " * 20
            messages.append({"role": "user", "content": text})
            tokens, cached = ask(gateway, model, messages)
            # The model's template ends a prompt with what an answer begins with.
            assert cached >= prompts[number][-1] - 32
            prompts[number].append(tokens)

    sent = [each.counters().prompt_tokens - was for each, was in zip(llamas, before, strict=True)]
    assert sum(sent) == sum(map(sum, prompts))
    assert min(sent) > 0, "one server had everything"
