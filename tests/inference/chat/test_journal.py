"""Killed gateways and unreachable databases: no request without its row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx2

from tests.support.clients.raw_client import RawClient
from tests.support.ledger.journal_files import admissions
from tests.support.live import Gateway
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until
from usage.models import Admission

StartGateway = Callable[..., Gateway]


def test_a_killed_gateway_leaves_one_interrupted_row_for_every_request_that_ran(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    killed = start_gateway()
    marker = f"killed under {killed.organization.pk}"
    with RawClient(killed) as streaming, RawClient(killed) as waiting:
        streaming.chat(f"{marker} [[sim tokens=400 pace=40]]", stream=True)
        waiting.chat("[[sim first=30]]")
        streaming.read_until(60, b"data: ")
        until(lambda: admissions(tmp_path, str(killed.organization.pk)) == 2)
        killed.command.kill()
        streaming.rest()
    assert killed.rows() == []
    assert b"[DONE]" not in streaming.received

    restarted = start_gateway()

    rows = {row.streamed: row for row in restarted.rows_when(2)}
    assert {(row.outcome, row.http_status, row.error_code) for row in rows.values()} == {
        ("interrupted", 500, "internal_error")
    }
    assert rows[True].request_id == streaming.request_id
    produced = killed.simulator.request_with(marker)
    figures = rows[True]
    assert figures.backend_reported_input_tokens == produced["prompt_tokens"]
    # Progress is recorded once a second, so at most the last second is not on the row.
    assert 20 <= figures.backend_reported_output_tokens <= produced["produced_tokens"]
    assert figures.delivered_output_tokens <= figures.generated_output_tokens
    assert rows[False].generated_output_tokens == 0
    assert not list((tmp_path / "journal").glob("*.damaged"))


def test_answers_given_during_an_outage_survive_the_gateways_death(
    start_gateway: StartGateway,
) -> None:
    killed = start_gateway()
    assert killed.chat("say: warm").status_code == 200
    with rows_locked():
        answers = [killed.chat("say: ok") for _ in range(3)]
        killed.command.kill()
        assert [answer.status_code for answer in answers] == [200] * 3

    restarted = start_gateway()

    rows = restarted.rows_when(4)
    assert {row.outcome for row in rows} == {"success"}
    assert {answer.headers["x-request-id"] for answer in answers} < {row.request_id for row in rows}


def test_with_neither_database_nor_journal_nothing_runs_unmetered(
    start_gateway: StartGateway,
) -> None:
    gateway = start_gateway(SVC_JOURNAL_MAX_BYTES="0")
    assert gateway.chat("say: warm").status_code == 200
    with rows_locked(Admission):
        asked = len(gateway.simulator.requests())
        refused = [gateway.chat("say: ok") for _ in range(2)]

        assert [(each.status_code, code_of(each)) for each in refused] == [
            (503, "server_overloaded")
        ] * 2
        assert len(gateway.simulator.requests()) == asked

    until(lambda: gateway.chat("say: ok").status_code == 200)


def code_of(answer: httpx2.Response) -> str:
    code: str = answer.json()["error"]["code"]
    return code
