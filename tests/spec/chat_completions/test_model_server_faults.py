"""Failures of a model server as a client sees them: the form of the error, what is paid, what is tried again.

``tests/faults/model_servers/test_scripted_answers.py`` has every failure, with its row.
"""

from __future__ import annotations

import pytest

from tests.spec.test_error_table import CONTRACT, TYPES, assert_refused
from tests.support.live import Gateway, events
from tests.support.live_catalog import backend, publish


def test_a_failure_has_the_contracts_form_by_status_and_in_a_stream(gateway: Gateway) -> None:
    whole = gateway.chat("[[sim fault=cut@3]]")
    streamed = gateway.chat("[[sim tokens=9 fault=cut@3]]", stream=True)

    assert_refused(whole, 500, "backend_unavailable", None)
    assert streamed.status_code == 200
    *chunks, last = events(streamed.text)
    assert chunks
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last.keys() == {"error"}
    assert last["error"].keys() == {"message", "type", "param", "code"}
    assert last["error"]["code"] == "backend_unavailable"
    (status,) = (status for status, code in CONTRACT if code == last["error"]["code"])
    assert last["error"]["type"] == TYPES[status]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("model", ["running", "plain"])
def test_without_a_report_the_client_gets_the_gateways_count_and_pays_nothing(
    gateway: Gateway, model: str, streamed: bool
) -> None:
    answer = gateway.chat("say: one two three [[sim fault=no_usage]]", model, stream=streamed)

    usage = events(answer.text)[-2]["usage"] if streamed else answer.json()["usage"]
    row = gateway.row(answer.headers["x-request-id"])
    assert usage["completion_tokens"] == row.generated_output_tokens == 3
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (0, 0)


def test_an_overloaded_model_server_leads_to_one_retry(gateway: Gateway) -> None:
    entry = publish(gateway, backend(gateway), backend(gateway))
    marker = f"twice {gateway.organization.pk}"

    answer = gateway.chat(f"{marker} [[sim fault=status@503]]", entry.identifier)

    assert answer.json()["error"]["code"] == "server_overloaded"
    assert len([each for each in gateway.simulator.requests() if marker in str(each)]) == 2
    assert len(gateway.rows_when(1)) == 1
