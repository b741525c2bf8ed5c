"""What is on the rows is what llama.cpp itself counted, also when the client has left."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.servers.llama import LlamaServer
from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.live import Gateway, events
from tests.support.live_catalog import backend, publish
from tests.support.metrics import metrics
from tests.support.until import until
from usage.models import UsageRow

NEVER_ENDS: dict[str, Any] = {
    "max_tokens": 16_000,
    "temperature": 0,
    "logit_bias": {"4": -100, "2": -100},
}
"""An answer that only the cap ends: its end tokens are forbidden."""


def model_on(gateway: Gateway, llama: LlamaServer, **columns: Any) -> str:
    """The identifier of a model on ``llama``; without ``columns`` nothing is set for it."""
    columns = {"first_byte_seconds": 30, **columns}
    return publish(gateway, backend(gateway, base_url=llama.base_url, **columns)).identifier


def quiet(llama: LlamaServer) -> None:
    """Return when the server works on nothing."""
    until(lambda: not llama.busy_slots())


@pytest.mark.parametrize("dialect", ["auto", "llama.cpp", "none"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_rows_are_the_sum_of_the_servers_own_counters(
    gateway: Gateway, llama: LlamaServer, dialect: str, streamed: bool
) -> None:
    model = model_on(gateway, llama, running_usage=dialect)
    quiet(llama)
    before = llama.counters()

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


def disconnect(
    gateway: Gateway, llama: LlamaServer, model: str, how: Disconnect, frames: int
) -> tuple[UsageRow, int]:
    """The row of a client that left a long answer, and the tokens that the server generated for it."""
    before = llama.counters().output_tokens
    with RawClient(gateway) as client:
        client.chat("go on for long", model, stream=True, **NEVER_ENDS)
        client.read_until(frames, b"data: ")
        assert llama.busy_slots()
        client.disconnect(how)
        quiet(llama)
        generated = llama.counters().output_tokens - before
        (row,) = gateway.rows_when(1)
    return row, generated


def test_without_running_figures_the_limit_of_the_backend_ends_it(
    gateway: Gateway, llama: LlamaServer
) -> None:
    model = model_on(gateway, llama, running_usage="none", disconnect_drain_seconds=0.3)
    quiet(llama)

    row, generated = disconnect(gateway, llama, model, Disconnect.FIN, frames=20)

    assert generated < NEVER_ENDS["max_tokens"], "the server was not let go"
    assert row.outcome == "client_disconnected"
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)
    assert row.generated_output_tokens >= 10
    counted = metrics(gateway).sum("svc_unreported_tokens_total", model=model)
    assert counted == row.generated_output_tokens
