"""What is on the rows is what llama.cpp itself counted, also when the client has left."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.servers.llama import LlamaServer
from tests.real.trial import NEVER_ENDS
from tests.support.clients.raw_client import leave
from tests.support.live import Gateway, events
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics


def model_on(gateway: Gateway, llama: LlamaServer, **columns: Any) -> str:
    """The identifier of a model on ``llama``; without ``columns`` nothing is set for it."""
    columns = {"first_byte_seconds": 30, **columns}
    return publish(gateway, backend(gateway, base_url=llama.base_url, **columns)).identifier


@pytest.mark.parametrize("dialect", ["auto", "llama.cpp", "none"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_rows_are_the_sum_of_the_servers_own_counters(
    gateway: Gateway, llama: LlamaServer, dialect: str, streamed: bool
) -> None:
    model = model_on(gateway, llama, running_usage=dialect)
    before = llama.be_quiet()

    for number in range(8):
        # The prompts begin alike, so that some of their tokens come from the server's cache.
        text = "hello there, " * number
        answer = gateway.chat(text, model, stream=streamed, max_tokens=3 + 5 * number)
        assert answer.status_code == 200

    rows, after = gateway.rows_when(8), llama.counters()
    reported = [
        sum(row.backend_reported_input_tokens for row in rows),
        sum(row.backend_reported_output_tokens for row in rows),
    ]
    assert reported == [
        after.prompt_tokens - before.prompt_tokens,
        after.output_tokens - before.output_tokens,
    ]


@pytest.mark.walk
def test_running_figures_do_not_reach_the_client(gateway: Gateway, llama: LlamaServer) -> None:
    answer = gateway.chat("hello", model_on(gateway, llama), stream=True, max_tokens=5)

    *chunks, usage, done = events(answer.text)
    assert done == "[DONE]"
    assert "timings" not in answer.text
    assert {chunk["usage"] is None for chunk in chunks} == {True}
    assert usage["usage"]["completion_tokens"] == 5


def test_without_running_figures_the_limit_of_the_backend_ends_it(
    gateway: Gateway, llama: LlamaServer
) -> None:
    model = model_on(gateway, llama, running_usage="none", disconnect_drain_seconds=0.3)
    before = llama.be_quiet().output_tokens

    leave(gateway, model, 20, "go on for long", **NEVER_ENDS)
    generated = llama.be_quiet().output_tokens - before
    (row,) = gateway.rows_when(1)

    assert generated < NEVER_ENDS["max_tokens"], "the server was not let go"
    assert row.outcome == "client_disconnected"
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)
    assert row.generated_output_tokens >= 10
    counted = metrics(gateway).sum("svc_unreported_tokens_total", model=model)
    assert counted == row.generated_output_tokens
