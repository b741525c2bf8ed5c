"""llama.cpp closes a connection after each streamed answer, without saying it: nothing is lost."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable

import httpx2
import pytest

from tests.real.servers.llama import LlamaServer
from tests.support.live import NO_TLS, Gateway
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics

STREAMS = int(os.environ.get("SVC_TEST_STREAMS", "200"))
"""Set the variable to 2000 for the figure in docs/develop/testing.md."""


def model_on(gateway: Gateway, llama: LlamaServer, count: int = 1, **columns: object) -> str:
    """The identifier of a model on ``count`` backends, all of them ``llama``."""
    backends = [
        backend(gateway, base_url=llama.base_url, first_byte_seconds=30, **columns)
        for _ in range(count)
    ]
    return publish(gateway, *backends).identifier


def ask_many(gateway: Gateway, model: str, count: int, at_once: int) -> Counter[str]:
    """How ``count`` streams ended, ``at_once`` of them at a time, each as soon as one is over."""
    found: Counter[str] = Counter()
    numbers = iter(range(count))

    async def caller(client: httpx2.AsyncClient) -> None:
        for number in numbers:
            body = {
                "model": model,
                "stream": True,
                "max_tokens": 1 + number % 8,
                "messages": [{"role": "user", "content": f"hello {number}"}],
            }
            answer = await client.post("/chat/completions", json=body, headers=gateway.headers)
            found[ending(answer)] += 1

    async def callers() -> None:
        async with httpx2.AsyncClient(
            base_url=gateway.base_url, timeout=60, verify=NO_TLS
        ) as client:
            await asyncio.gather(*(caller(client) for _ in range(at_once)))

    asyncio.run(callers())
    return found


def ending(answer: httpx2.Response) -> str:
    if answer.status_code != 200:
        return str(answer.json()["error"]["code"])
    return "served" if answer.text.endswith("data: [DONE]\n\n") else "broken off"


@pytest.mark.parametrize("at_once", [1, 8, 32])
def test_no_stream_is_lost_to_a_connection_that_the_server_closed(
    gateway: Gateway, llama: LlamaServer, at_once: int
) -> None:
    model = model_on(gateway, llama)

    found = ask_many(gateway, model, STREAMS, at_once)

    assert found == {"served": STREAMS}
    rows = gateway.rows_when(STREAMS)
    assert {row.outcome for row in rows} == {"success"}
    assert len({row.request_id for row in rows}) == STREAMS


def test_a_close_after_a_stream_costs_no_retry_and_is_no_failure(
    start_gateway: Callable[..., Gateway], llama: LlamaServer
) -> None:
    gateway = start_gateway(SVC_BACKEND_EJECT_AFTER="1")
    model = model_on(gateway, llama, count=2)

    assert ask_many(gateway, model, STREAMS, 4) == {"served": STREAMS}

    after = metrics(gateway)
    for what in ("failures", "ejections", "stale_connections"):
        assert after.sum(f"svc_backend_{what}_total") == 0
