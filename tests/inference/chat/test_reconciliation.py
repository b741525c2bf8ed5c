"""The independent count of a sample of the rows, with correct and with wrong model servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ids import request_id
from inference.chat import tokenizers
from inference.chat.reconciliation import Counted, Reconciler, divergence, is_sampled, matches
from tests.support.builders import catalog_rows
from tests.support.cases.chat_requests import TOOL
from tests.support.live import Gateway, events
from tests.support.live_catalog import backend, publish
from tests.support.model_servers.scripted import Script, body, completion, scripted_server, usage
from tests.support.until import until
from usage.models import UsageRow

FRACTION = 0.2
"""SVC_SAMPLED_FRACTION of the live gateway (tests/conftest.py)."""
TRIES = 150


def chat_until(
    gateway: Gateway, sampled: bool, text: str, model: str, **fields: Any
) -> httpx2.Response:
    """Repeat a request until its answer is in the sample, or outside of it."""
    for _ in range(TRIES):
        answer = gateway.chat(text, model, **fields)
        if is_sampled(answer.headers["x-request-id"], FRACTION) is sampled:
            return answer
    raise AssertionError("no request fell where it should")


def reconciled(gateway: Gateway, answer: httpx2.Response) -> UsageRow:
    def look() -> UsageRow | None:
        row = gateway.row(answer.headers["x-request-id"])
        return row if row.reconciliation else None

    return until(look)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("model", ["running", "plain"])
def test_a_correct_model_server_matches(gateway: Gateway, model: str, streamed: bool) -> None:
    text = "What is the capital of France? नमस्ते 你好"

    answer = chat_until(gateway, True, text, model, stream=streamed)

    row = reconciled(gateway, answer)
    usage = events(answer.text)[-2]["usage"] if streamed else answer.json()["usage"]
    assert row.reconciliation == "matched"
    assert row.svc_counted_input_tokens == row.backend_reported_input_tokens
    assert row.svc_counted_input_tokens == usage["prompt_tokens"]
    assert row.svc_counted_output_tokens == usage["completion_tokens"]
    assert row.reconciliation_divergence == "0.000000"


def test_a_row_outside_the_sample_stays_without_a_count(gateway: Gateway) -> None:
    outside = chat_until(gateway, False, "say: ok", "running")
    reconciled(gateway, chat_until(gateway, True, "say: ok", "running"))

    row = gateway.row(outside.headers["x-request-id"])

    assert row.reconciliation is None
    assert row.reconciliation_divergence is None
    assert (row.svc_counted_input_tokens, row.svc_counted_output_tokens) == (None, None)


def test_without_a_tokenizer_the_count_is_unavailable(gateway: Gateway) -> None:
    row = reconciled(gateway, chat_until(gateway, True, "say: ok", "mini"))

    assert row.reconciliation == "unavailable"
    assert row.svc_counted_input_tokens is None
    assert row.reconciliation_divergence is None


@contextmanager
def lying_server() -> Iterator[str]:
    """The address of a server that says one word and reports fifty tokens for it."""
    message = {"role": "assistant", "content": "Yes"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    with scripted_server() as server:
        server.whole = Script([body(completion(choices=choices, usage=usage(50, 10)))])
        yield server.base_url


def test_a_wrong_report_is_billed_and_marked_as_diverged_where_no_template_explains_it(
    gateway: Gateway,
) -> None:
    with lying_server() as address:
        weights = catalog_rows.weights(f"liar-{gateway.organization.pk}", tokenizer="o200k")
        on = backend(gateway, base_url=address)
        model = publish(gateway, on, weights=weights, tool_calling=True).identifier
        row = reconciled(gateway, chat_until(gateway, True, "Is it so?", model))
        tools = reconciled(gateway, chat_until(gateway, True, "Is it so?", model, tools=[TOOL]))

    assert (tools.shape, tools.reconciliation) == ("tools", "matched")
    assert (row.shape, row.reconciliation) == ("chat", "diverged")
    assert row.backend_reported_output_tokens == 50
    assert row.svc_counted_output_tokens == 1
    assert row.svc_counted_input_tokens is not None
    counted = row.svc_counted_input_tokens + row.svc_counted_output_tokens
    assert row.reconciliation_divergence == str(
        (Decimal(counted - 60) / 60).quantize(Decimal("0.000001"))
    )


def test_without_a_report_the_row_diverges_without_a_number(gateway: Gateway) -> None:
    row = reconciled(
        gateway, chat_until(gateway, True, "say: ok [[sim fault=no_usage]]", "running")
    )

    assert row.reconciliation == "diverged"
    assert row.reconciliation_divergence is None
    assert row.svc_counted_output_tokens == 1


def test_a_start_loads_the_tokenizers_and_names_those_that_do_not_exist(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tokenizers.load.cache_clear()
    reconciler = Reconciler()
    reconciler.prepare(["o200k", "", "nothing", "o200k"])
    reconciler.close()

    assert tokenizers.load.cache_info().currsize == 1
    (record,) = caplog.records
    assert record.message.startswith("There is no tokenizer 'nothing'.")


@given(fraction=st.floats(0, 1))
def test_the_sample_is_the_same_for_the_same_id_and_nested_in_larger_ones(fraction: float) -> None:
    ids = [request_id() for _ in range(20)]

    sample = {each for each in ids if is_sampled(each, fraction)}

    assert sample == {each for each in ids if is_sampled(each, fraction)}
    assert sample <= {each for each in ids if is_sampled(each, min(1.0, fraction * 2))}
    assert all(is_sampled(each, 1) for each in ids)
    assert not any(is_sampled(each, 0) for each in ids)


def test_the_sample_is_about_as_large_as_the_fraction() -> None:
    found = sum(is_sampled(request_id(), FRACTION) for _ in range(5000))

    assert 0.15 < found / 5000 < 0.25


def test_divergence_is_relative_to_the_report_over_input_and_output() -> None:
    assert divergence(Counted(110, 10), 100) == Decimal("0.2")
    assert divergence(Counted(1, 1), 3) == Decimal("-0.333333")
    assert divergence(Counted(1, 1), 0) is None


@pytest.mark.parametrize(
    ("shape", "counted", "reported", "matched"),
    [
        ("chat", (12, 3), 40, True),  # a template's default system message
        ("chat", (9, 1), 60, False),  # fifty tokens claimed for one
        ("chat", (4000, 800), 5000, True),
        ("chat", (4000, 700), 5000, False),
        ("tools", (103, 30), 258 + 78, True),  # measured with a Hermes template
        ("tools", (2000, 100), 3400, True),  # tools indented in the prompt
        ("tools", (2000, 100), 4200, False),  # counted twice
        ("json_object", (40, 20), 180, True),
        ("json_schema", (40, 20), 180, True),  # the schema repeated in the prompt
        ("json_schema", (1000, 500), 3000, False),
        ("tools", (10, 1), 0, False),
    ],
)
def test_what_a_template_adds_is_within_the_tolerance_of_the_shape(
    shape: str, counted: tuple[int, int], reported: int, matched: bool
) -> None:
    assert matches(Counted(*counted), reported, shape) is matched
