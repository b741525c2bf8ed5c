"""Running usage without a setting: the first streams of a backend find the dialect of its server."""

from __future__ import annotations

import pytest

from inference.models import Backend
from tests.support.clients.raw_client import leave
from tests.support.faults.case import publish_on, single
from tests.support.live import Gateway, events
from tests.support.metrics import metrics
from tests.support.model_servers.dialects import LONG, Dialect, DialectServer, running

VLLM, LLAMA_CPP = "continuous_usage_stats", "timings_per_token"
BOTH = {VLLM, LLAMA_CPP}
PROMPT_TOKENS = 7


def backend_on(gateway: Gateway, server: DialectServer) -> Backend:
    """A backend on ``server`` without a setting for running usage."""
    return single(gateway, base_url=f"{server.root}/v1", first_byte_seconds=10, idle_seconds=10)


def asked(server: DialectServer) -> list[set[str]]:
    """The dialects in which each request asked ``server``, in their order."""
    return [BOTH & {*body, *(body.get("stream_options") or {})} for body in server.bodies]


SERVERS: dict[str, tuple[Dialect, int, list[set[str]]]] = {
    "reports as vLLM": (Dialect(running="vllm"), 3, [BOTH, {VLLM}, {VLLM}]),
    "refuses both": (
        Dialect(refused=frozenset(BOTH)),
        4,
        [BOTH, set(), {VLLM}, set(), {LLAMA_CPP}, set(), set()],
    ),
}
"""Each server, a number of streams, and the dialects of the requests that it got; the others are in
``tests/inference/backends/test_usage_dialects.py``."""


@pytest.mark.parametrize("name", SERVERS)
def test_the_first_streams_find_the_dialect_and_no_caller_notices(
    gateway: Gateway, name: str
) -> None:
    dialect, streams, expected = SERVERS[name]
    with running(dialect) as server:
        model = publish_on(gateway, backend_on(gateway, server))
        for _ in range(streams):
            answer = gateway.chat("hello", model, stream=True)
            assert answer.status_code == 200
            *chunks, usage, done = events(answer.text)
            assert done == "[DONE]"
            assert {chunk["usage"] is None for chunk in chunks} == {True}
            assert usage["usage"]["completion_tokens"] == LONG
            assert "timings" not in answer.text

        assert asked(server) == expected

    rows = gateway.rows_when(streams)
    assert {row.outcome for row in rows} == {"success"}
    assert {row.backend_reported_input_tokens for row in rows} == {PROMPT_TOKENS}
    assert {row.backend_reported_output_tokens for row in rows} == {LONG}


@pytest.mark.parametrize("dialect", ["vllm", "llama.cpp"])
def test_a_client_that_disconnects_from_the_very_first_stream_is_metered(
    gateway: Gateway, dialect: str
) -> None:
    with running(Dialect(running=dialect, word_seconds=0.2)) as server:
        model = publish_on(gateway, backend_on(gateway, server))
        leave(gateway, model, 3)
        (row,) = gateway.rows_when(1)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.backend_reported_input_tokens == PROMPT_TOKENS
    assert 3 <= row.backend_reported_output_tokens < LONG
    assert metrics(gateway).sum("svc_unreported_tokens_total", model=model) == 0
