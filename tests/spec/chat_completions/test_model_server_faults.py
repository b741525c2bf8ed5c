"""Every failure of a model server, as the client sees it and as the ledger records it.

Every backend here has a single slot, so the next request proves that the slot was released.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.spec.test_error_table import CONTRACT, TYPES, assert_refused
from tests.support.builders import catalog_rows
from tests.support.live import Gateway, events
from tests.support.live_catalog import backend, publish
from usage.models import UsageRow


@dataclass(frozen=True)
class Seen:
    """How a request ends: its status, and the code in its body or in the stream's last frame."""

    status: int
    code: str | None = None


SERVED = Seen(200)
REJECTED = Seen(400, "backend_rejected_request")
GONE = Seen(500, "backend_unavailable")
FAILED = Seen(500, "backend_error")
INVALID = Seen(500, "backend_protocol_error")
SILENT = Seen(503, "backend_timeout")
FULL = Seen(503, "server_overloaded")


def in_band(seen: Seen) -> Seen:
    """Return the same failure after the stream's 200."""
    return Seen(200, seen.code)


@dataclass(frozen=True)
class Fault:
    """The result of a fault in a streamed and in a whole answer.

    ``early``: streamed with running usage, where that differs.
    """

    streamed: Seen
    whole: Seen
    early: Seen | None = None


FAULTS = {
    "status@400": Fault(REJECTED, REJECTED),
    "status@503": Fault(FULL, FULL),
    "redirect": Fault(INVALID, INVALID),
    "error_200": Fault(INVALID, FAILED),
    "cut@3": Fault(in_band(GONE), GONE),
    "hang@3": Fault(in_band(SILENT), SILENT),
    "error_frame@3": Fault(in_band(FAILED), SERVED),
    "no_usage": Fault(SERVED, SERVED),
    "negative_usage": Fault(in_band(INVALID), INVALID, early=INVALID),
    "decreasing_usage": Fault(in_band(INVALID), SERVED),
    "empty_choices_first": Fault(SERVED, SERVED),
    "bom": Fault(SERVED, INVALID),
    "big_frame": Fault(in_band(INVALID), SERVED),
}
OUTCOMES = {
    None: "success",
    "backend_rejected_request": "backend_rejected",
    "backend_unavailable": "backend_unavailable",
    "backend_error": "backend_error",
    "backend_protocol_error": "backend_protocol_error",
    "backend_timeout": "backend_timeout",
    "server_overloaded": "backend_unavailable",
}
TOKENS = 12
_models: dict[tuple[int, bool], str] = {}


def one_slot(gateway: Gateway, *, running: bool) -> str:
    """Publish a model with one slot and timeouts of half a second; return its identifier.

    Each request has a new connection, so that a broken one always means that the server crashed.
    """
    key = (gateway.port, running)
    if key not in _models:
        single = backend(
            gateway,
            max_concurrency=1,
            first_byte_seconds=0.5,
            idle_seconds=0.5,
            running_usage="vllm" if running else "none",
            keep_alive="off",
        )
        weights = catalog_rows.weights(f"test/faults-{uuid.uuid4()}", tokenizer="o200k")
        _models[key] = publish(gateway, single, weights=weights).identifier
    return _models[key]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("running", "streamed"),
    [(True, True), (False, True), (True, False)],
    ids=["running", "plain", "whole"],
)
def test_a_fault_has_one_answer_one_row_and_leaves_the_slot_free(
    gateway: Gateway, fault: str, running: bool, streamed: bool
) -> None:
    is_early = streamed and running
    late = FAULTS[fault].streamed if streamed else FAULTS[fault].whole
    expected = (FAULTS[fault].early if is_early else None) or late
    model = one_slot(gateway, running=running)
    marker = f"{fault} of {gateway.organization.pk}"

    answer = gateway.chat(f"{marker} [[sim tokens={TOKENS} fault={fault}]]", model, stream=streamed)

    assert answer.status_code == expected.status
    frames = events(answer.text) if streamed and answer.status_code == 200 else []
    if answer.status_code != 200:
        assert_refused(answer, expected.status, expected.code, None)
    code = error_code(answer, frames)
    assert code == expected.code
    row = gateway.row(answer.headers["x-request-id"])
    assert (row.http_status, row.error_code) == (expected.status, expected.code)
    assert row.outcome == OUTCOMES[expected.code]
    assert row.streamed is streamed
    assert_figures(row, gateway.simulator.request_with(marker), fault)
    if frames and fault != "decreasing_usage":
        assert row.delivered_output_tokens == len(contents(frames))

    assert gateway.chat("say: ok", model).status_code == 200
    assert len(gateway.rows_when(2)) == 2


def error_code(answer: httpx2.Response, frames: list[Any]) -> str | None:
    """Return the client's error code; a stream that fails ends with it and not with [DONE]."""
    if not frames:
        code: str | None = answer.json().get("error", {}).get("code")
        return code
    failed = [frame for frame in frames if "error" in frame]
    if not failed:
        assert frames[-1] == "[DONE]"
        return None
    assert failed == frames[-1:]
    assert failed[0].keys() == {"error"}
    assert failed[0]["error"].keys() == {"message", "type", "param", "code"}
    status = next(status for status, code in CONTRACT if code == failed[0]["error"]["code"])
    assert failed[0]["error"]["type"] == TYPES[status]
    assert "[DONE]" not in frames
    assert all(frame["usage"] is None for frame in frames[:-1])
    return str(failed[0]["error"]["code"])


def contents(frames: list[Any]) -> list[str]:
    """Return the content of the frames; the simulator sends one for each token."""
    deltas = [
        frame["choices"][0]["delta"]
        for frame in frames
        if isinstance(frame, dict) and frame.get("choices")
    ]
    return [delta["content"] for delta in deltas if delta.get("content")]


def assert_figures(row: UsageRow, produced: dict[str, Any], fault: str) -> None:
    """Assert that the row's token counts never exceed those of the simulator's log."""
    assert row.delivered_output_tokens <= row.generated_output_tokens
    if fault == "decreasing_usage" and row.streamed:
        # The first report of this fault is wrong, which only the second one reveals.
        return
    tokens = produced["produced_tokens"]
    assert row.backend_reported_input_tokens in (0, produced["prompt_tokens"])
    assert row.backend_reported_output_tokens <= tokens
    assert row.generated_output_tokens <= tokens
    if row.outcome == "success":
        assert row.generated_output_tokens == row.delivered_output_tokens == tokens == TOKENS
        assert row.backend_reported_output_tokens == (0 if fault == "no_usage" else tokens)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "plain"])
def test_without_a_report_the_client_gets_the_gateways_count_and_pays_nothing(
    gateway: Gateway, running: bool, streamed: bool
) -> None:
    model = one_slot(gateway, running=running)

    answer = gateway.chat("say: one two three [[sim fault=no_usage]]", model, stream=streamed)

    usage = events(answer.text)[-2]["usage"] if streamed else answer.json()["usage"]
    row = gateway.row(answer.headers["x-request-id"])
    assert usage["completion_tokens"] == row.generated_output_tokens == 3
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)


def test_a_request_that_may_have_started_is_not_retried(gateway: Gateway) -> None:
    new = [backend(gateway, keep_alive="off") for _ in range(2)]
    entry = publish(gateway, *new)
    marker = f"once {gateway.organization.pk}"

    answer = gateway.chat(f"{marker} [[sim fault=cut]]", entry.identifier)

    assert answer.status_code == 500
    assert gateway.simulator.request_with(marker)["fault"] == "cut"


def test_an_overloaded_model_server_leads_to_one_retry(gateway: Gateway) -> None:
    entry = publish(gateway, backend(gateway), backend(gateway))
    marker = f"twice {gateway.organization.pk}"

    answer = gateway.chat(f"{marker} [[sim fault=status@503]]", entry.identifier)

    assert answer.json()["error"]["code"] == "server_overloaded"
    assert len([each for each in gateway.simulator.requests() if marker in str(each)]) == 2
    assert len(gateway.rows_when(1)) == 1
