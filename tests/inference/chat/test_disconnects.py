"""Clients that disconnect: each has one row with the tokens that were generated and delivered."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.faults.oracle import assert_books_agree
from tests.support.faults.seen import Seen, new_marker
from tests.support.ledger.journal_files import admissions
from tests.support.live import Gateway, marker_of
from tests.support.live_catalog import backend, publish
from tests.support.until import until

SEED = 20261120
LEAVERS = 50
TOKENS = 24
AT_ONCE = 10


def leave_midway(gateway: Gateway, model: str, number: int) -> Seen:
    """Disconnect at a random point of the stream, from the role frame to the finish frame."""
    dice = random.Random(SEED + number)
    how, frames = dice.choice(list(Disconnect)), dice.randint(1, TOKENS + 1)
    marker = new_marker()
    with RawClient(gateway) as client:
        client.chat(f"{marker}. [[sim tokens={TOKENS} pace=60]]", model, stream=True)
        client.read_until(frames, b"data: ")
        client.disconnect(how)
        if how is Disconnect.HALF_CLOSE:
            client.rest()
        return Seen(marker, True, client.request_id, 200, pieces=min(frames - 1, TOKENS))


@pytest.mark.parametrize("model", ["running", "plain"])
def test_fifty_clients_that_disconnect_in_mid_stream_have_fifty_correct_rows(
    gateway: Gateway, model: str
) -> None:
    log = gateway.command.log
    before = log.stat().st_size
    with ThreadPoolExecutor(AT_ONCE) as threads:
        seen = list(threads.map(partial(leave_midway, gateway, model), range(LEAVERS)))

    rows = assert_books_agree(gateway, seen, gateway.simulator.requests, LEAVERS)

    entries = {marker_of(entry): entry for entry in gateway.simulator.requests()}
    found = {row.request_id: row for row in rows}
    for each in seen:
        row, entry = found[str(each.request_id)], entries[each.marker]
        told = (row.outcome, row.http_status, row.error_code)
        assert row.backend_reported_input_tokens == entry["prompt_tokens"]
        assert row.generated_output_tokens == row.backend_reported_output_tokens
        if row.outcome == "success":
            assert told == ("success", 200, None)
            assert row.generated_output_tokens == row.delivered_output_tokens == TOKENS
            continue
        assert told == ("client_disconnected", 499, "client_disconnected")
        if model == "running":
            assert entry["aborted"] or entry["produced_tokens"] == TOKENS
        else:
            assert not entry["aborted"], "the real figure was not waited for"
            assert row.backend_reported_output_tokens == TOKENS
            if each.pieces < TOKENS // 2:
                assert row.delivered_output_tokens < TOKENS
    outcomes = [row.outcome for row in rows]
    assert outcomes.count("client_disconnected") > LEAVERS * 3 // 4
    assert b"ERROR" not in log.read_bytes()[before:]


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
