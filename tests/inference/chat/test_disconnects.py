"""Clients that disconnect: each has one row with the tokens that were generated and delivered."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.ledger.journal_files import admissions
from tests.support.live import Gateway, marker_of
from tests.support.live_catalog import backend, publish
from tests.support.until import until
from usage.models import UsageRow

SEED = 20261120
LEAVERS = 50
TOKENS = 24
AT_ONCE = 10


@dataclass(frozen=True)
class Departure:
    """How a client disconnected, after how many frames; ``request_id`` is from the answer's head."""

    marker: str
    how: Disconnect
    frames: int
    request_id: str = ""


def plan(gateway: Gateway) -> list[Departure]:
    """Choose random points in the stream, from the role frame to the finish frame."""
    dice = random.Random(SEED)
    return [
        Departure(
            f"leaver {number} of {gateway.organization.pk}",
            dice.choice(list(Disconnect)),
            dice.randint(1, TOKENS + 1),
        )
        for number in range(LEAVERS)
    ]


def leave_midway(gateway: Gateway, model: str, departure: Departure) -> Departure:
    with RawClient(gateway) as client:
        client.chat(f"{departure.marker}. [[sim tokens={TOKENS} pace=60]]", model, stream=True)
        client.read_until(departure.frames, b"data: ")
        client.disconnect(departure.how)
        if departure.how is Disconnect.HALF_CLOSE:
            client.rest()
        return Departure(departure.marker, departure.how, departure.frames, client.request_id)


def logged(gateway: Gateway, departures: Sequence[Departure]) -> dict[str, dict[str, Any]]:
    """Return the simulator's own entries of these requests by marker, once all have ended."""

    def look() -> dict[str, dict[str, Any]] | None:
        entries = {marker_of(entry): entry for entry in gateway.simulator.requests()}
        found = {each.marker: entries.get(each.marker) for each in departures}
        return found if all(found.values()) else None  # type: ignore[return-value]  # none is None

    return until(look)


@pytest.mark.parametrize("model", ["running", "plain"])
def test_fifty_clients_that_disconnect_in_mid_stream_have_fifty_correct_rows(
    gateway: Gateway, model: str
) -> None:
    log = gateway.command.log
    before = log.stat().st_size
    with ThreadPoolExecutor(AT_ONCE) as threads:
        departures = list(
            threads.map(lambda each: leave_midway(gateway, model, each), plan(gateway))
        )

    rows = {row.request_id: row for row in gateway.rows_when(LEAVERS)}
    entries = logged(gateway, departures)

    assert set(rows) == {departure.request_id for departure in departures}
    outcomes = []
    for departure in departures:
        row, entry = rows[departure.request_id], entries[departure.marker]
        outcomes.append(row.outcome)
        assert_row_agrees(row, entry, departure)
        if row.outcome == "success":
            assert row.generated_output_tokens == row.delivered_output_tokens == TOKENS
        elif model == "running":
            assert entry["aborted"] or entry["produced_tokens"] == TOKENS
        else:
            assert not entry["aborted"], "the real figure was not waited for"
            assert row.backend_reported_output_tokens == TOKENS
            if departure.frames <= TOKENS // 2:
                assert row.delivered_output_tokens < TOKENS
    assert outcomes.count("client_disconnected") > LEAVERS * 3 // 4
    assert b"ERROR" not in log.read_bytes()[before:]


def assert_row_agrees(row: UsageRow, entry: dict[str, Any], departure: Departure) -> None:
    """Assert that ``row`` has at most the tokens produced, and at least those the client read."""
    if row.outcome == "success":
        assert (row.http_status, row.error_code) == (200, None)
    else:
        assert row.outcome == "client_disconnected"
        assert (row.http_status, row.error_code) == (499, "client_disconnected")
    assert row.backend_reported_input_tokens == entry["prompt_tokens"]
    assert row.backend_reported_output_tokens <= entry["produced_tokens"]
    assert row.generated_output_tokens == row.backend_reported_output_tokens
    read = min(departure.frames - 1, TOKENS)
    assert read <= row.delivered_output_tokens <= row.generated_output_tokens


@pytest.mark.parametrize("how", list(Disconnect), ids=lambda how: how.value)
def test_a_client_that_disconnects_after_a_large_body_is_noticed(
    gateway: Gateway, worker_directory: Path, how: Disconnect
) -> None:
    """The server stops reading at a large body, and would not see the end of the connection."""
    organization_id = str(gateway.organization.pk)
    before = admissions(worker_directory, organization_id)
    with RawClient(gateway) as client:
        client.chat(f"[[sim first=3 tokens=5]] {'word ' * 40_000}", stream=True)
        until(lambda: admissions(worker_directory, organization_id) == before + 1)
        client.disconnect(how)

        (row,) = gateway.rows_when(1)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)


@pytest.mark.parametrize("running_usage", ["vllm", "none"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_client_that_disconnects_in_the_queue_is_never_sent_to_the_model_server(
    gateway: Gateway, running_usage: str, streamed: bool
) -> None:
    entry = publish(gateway, backend(gateway, max_concurrency=1, running_usage=running_usage))
    marker = f"never asked, {gateway.organization.pk}"
    with RawClient(gateway) as first, RawClient(gateway) as second:
        first.chat("[[sim tokens=20 pace=40]]", entry.identifier, stream=True)
        first.read_until(2, b"data: ")
        second.chat(marker, entry.identifier, stream=streamed)
        # Two round trips on other connections: by then the second request is in the queue.
        for _ in range(2):
            gateway.post(b"{")
        second.disconnect(Disconnect.FIN)
        first.read_until(1, b"[DONE]")

        rows = gateway.rows_when(2)

    left = next(row for row in rows if row.outcome == "client_disconnected")
    assert (left.generated_output_tokens, left.delivered_output_tokens) == (0, 0)
    assert not [each for each in gateway.simulator.requests() if marker in str(each)]
    assert gateway.chat("say: ok", entry.identifier).status_code == 200


@pytest.mark.long
def test_a_client_may_pause_for_longer_than_the_idle_timeout_of_a_model_server(
    gateway: Gateway,
) -> None:
    entry = publish(gateway, backend(gateway, idle_seconds=1, running_usage="vllm"))
    with RawClient(gateway) as client:
        client.set_timeout(60)
        client.chat("[[sim tokens=60000 burst=2000]]", entry.identifier, stream=True)
        client.read_until(1, b"data: ")
        # The test needs the pause itself: more than twice the model server's idle timeout.
        time.sleep(2.5)
        client.read_until(1, b"[DONE]")

        row = gateway.row(client.request_id)

    assert (row.outcome, row.delivered_output_tokens) == ("success", 60_000)


def test_a_half_sent_request_has_no_row(gateway: Gateway) -> None:
    for how in (Disconnect.FIN, Disconnect.RST):
        with RawClient(gateway) as client:
            client.head("content-length: 1000", key=gateway.key)
            client.send(b'{"model": "acme/demo-8b"')
            client.disconnect(how)

    assert gateway.chat("say: ok").status_code == 200
    assert len(gateway.rows_when(1)) == 1
