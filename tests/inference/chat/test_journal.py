"""Killed gateways and unreachable databases: no request without its row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from django.db import connection

from tests.support.clients.raw_client import RawClient
from tests.support.ledger.journal_files import admissions
from tests.support.live import NO_TLS, Gateway
from tests.support.servers.database_outage import rows_locked
from tests.support.until import until
from usage.models import Admission

StartGateway = Callable[..., Gateway]


def test_a_killed_gateway_leaves_one_row_for_every_request_that_ran(
    start_gateway: StartGateway, tmp_path: Path
) -> None:
    """Interrupted ones, and answers that were given while the database was away."""
    killed = start_gateway()
    marker = f"killed under {killed.organization.pk}"
    with RawClient(killed) as streaming, RawClient(killed) as waiting:
        streaming.chat(f"{marker} [[sim tokens=400 pace=40]]", stream=True)
        waiting.chat("[[sim first=30]]")
        streaming.read_until(60, b"data: ")
        until(lambda: admissions(tmp_path, str(killed.organization.pk)) == 2)
        with rows_locked():
            answers = [killed.chat("say: ok") for _ in range(3)]
            killed.command.kill()
        streaming.rest()
    assert [answer.status_code for answer in answers] == [200] * 3
    assert killed.rows() == []
    assert b"[DONE]" not in streaming.received

    restarted = start_gateway()

    rows = {row.request_id: row for row in restarted.rows_when(5)}
    given = [rows.pop(answer.headers["x-request-id"]) for answer in answers]
    assert {row.outcome for row in given} == {"success"}
    assert {(row.outcome, row.http_status, row.error_code) for row in rows.values()} == {
        ("interrupted", 500, "internal_error")
    }
    figures = rows.pop(streaming.request_id)
    produced = killed.simulator.request_with(marker)
    assert figures.backend_reported_input_tokens == produced["prompt_tokens"]
    # Progress is recorded once a second, so at most the last second is not on the row.
    assert 20 <= figures.backend_reported_output_tokens <= produced["produced_tokens"]
    assert figures.delivered_output_tokens <= figures.generated_output_tokens
    assert [row.generated_output_tokens for row in rows.values()] == [0]
    assert not list((tmp_path / "journal").glob("*.damaged"))


def test_with_neither_database_nor_journal_nothing_runs_unmetered_and_readiness_fails(
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
    ready(gateway, 200)
    until(lambda: gateway.chat("say: ok").status_code == 200)

    with rows_locked():
        # On PostgreSQL the lock on the rows lets the admission through, and the answer is withheld.
        withheld = "internal_error" if connection.vendor == "postgresql" else "server_overloaded"
        assert code_of(gateway.chat("say: nobody may have this")) == withheld
        assert ready(gateway, 503)["status"] == "not_ready"
        assert code_of(gateway.chat("say: nor this")) == "server_overloaded"
    assert ready(gateway, 200)["reasons"] == []


def ready(gateway: Gateway, status: int) -> dict[str, Any]:
    """What ``/readyz`` says, once it has this status."""

    def asked() -> httpx2.Response | None:
        answer = httpx2.get(f"{gateway.url}/readyz", verify=NO_TLS)
        return answer if answer.status_code == status else None

    said: dict[str, Any] = until(asked).json()
    return said


def code_of(answer: httpx2.Response) -> str:
    code: str = answer.json()["error"]["code"]
    return code
