"""Clients that leave: one row each, honest about what ran and about what they got."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.live import Gateway, eventually
from tests.live_catalog import backend, publish
from tests.raw_client import Leaving, RawClient
from usage.models import UsageRow

SEED = 20261120
LEAVERS = 50
TOKENS = 24
AT_ONCE = 10


@dataclass(frozen=True)
class Departure:
    """Who left how, after reading so many frames; ``request_id`` as the answer's head gave it."""

    marker: str
    how: Leaving
    frames: int
    request_id: str = ""


def plan(gateway: Gateway) -> list[Departure]:
    """Random points in the stream, the role frame the first, the finish frame the last."""
    dice = random.Random(SEED)
    return [
        Departure(
            f"leaver {number} of {gateway.organization.pk}",
            dice.choice(list(Leaving)),
            dice.randint(1, TOKENS + 1),
        )
        for number in range(LEAVERS)
    ]


def leave_midway(gateway: Gateway, model: str, departure: Departure) -> Departure:
    with RawClient(gateway) as client:
        client.chat(f"{departure.marker}. [[sim tokens={TOKENS} pace=60]]", model, stream=True)
        client.read_until(departure.frames, b"data: ")
        client.leave(departure.how)
        if departure.how is Leaving.HALF_CLOSE:
            client.rest()
        return Departure(departure.marker, departure.how, departure.frames, client.request_id)


def logged(gateway: Gateway, departures: Sequence[Departure]) -> dict[str, dict[str, Any]]:
    """The simulator's own entries of these requests by marker, once it has ended them all."""

    def look() -> dict[str, dict[str, Any]] | None:
        entries = {
            entry["body"]["messages"][0]["content"].partition(".")[0]: entry
            for entry in gateway.simulator.requests()
        }
        found = {each.marker: entries.get(each.marker) for each in departures}
        return found if all(found.values()) else None  # type: ignore[return-value]  # none is None

    return eventually(look, 20)


@pytest.mark.parametrize("model", ["running", "plain"])
def test_fifty_clients_that_leave_in_mid_stream_are_fifty_honest_rows(
    gateway: Gateway, model: str
) -> None:
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
        assert_honest(row, entry, departure)
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


def assert_honest(row: UsageRow, entry: dict[str, Any], departure: Departure) -> None:
    """``row`` claims no more than the model server made, and no less than the client read."""
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


def admissions(data: Path, organization_id: str) -> int:
    """How many requests of an organization the journals in ``data`` say were admitted."""
    texts = [path.read_text() for path in (data / "journal").glob("*.log")]
    return sum(
        line.count('"admitted"')
        for text in texts
        for line in text.splitlines()
        if organization_id in line
    )


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("model", ["running", "plain"])
def test_clients_that_leave_before_the_first_byte_are_rows_too(
    gateway: Gateway, model: str, streamed: bool, worker_directory: Path
) -> None:
    organization_id = str(gateway.organization.pk)
    before = admissions(worker_directory, organization_id)
    clients = [RawClient(gateway) for _ in Leaving]
    for number, client in enumerate(clients):
        client.chat(
            f"early {number} of {organization_id}. [[sim first=0.4 tokens=5]]",
            model,
            stream=streamed,
        )
    eventually(lambda: admissions(worker_directory, organization_id) == before + len(clients))
    for client, how in zip(clients, Leaving, strict=True):
        client.leave(how)

    rows = gateway.rows_when(len(clients))

    for client in clients:
        client.__exit__(None, None, None)
    assert [(row.outcome, row.http_status) for row in rows] == [("client_disconnected", 499)] * 3
    assert [row.delivered_output_tokens for row in rows] == [0] * 3
    if model == "plain" or not streamed:
        # Nothing reports while it runs: the answer was read to its end for its figures.
        assert [row.backend_reported_output_tokens for row in rows] == [5] * 3


@pytest.mark.parametrize("model", ["running", "plain"])
@pytest.mark.parametrize("how", list(Leaving), ids=lambda how: how.value)
def test_a_client_that_leaves_right_after_done_was_served(
    gateway: Gateway, model: str, how: Leaving
) -> None:
    with RawClient(gateway) as client:
        client.chat("say: one two three", model, stream=True)
        client.read_until(1, b"data: [DONE]\n\n")
        client.leave(how)

        row = gateway.row(client.request_id)

    assert (row.outcome, row.http_status, row.error_code) == ("success", 200, None)
    assert row.delivered_output_tokens == row.generated_output_tokens == 3


def test_an_sdk_that_hangs_up_at_done_was_served(gateway: Gateway) -> None:
    for _ in range(5):
        with gateway.openai() as client:
            for _chunk in client.chat.completions.create(
                model="acme/demo-8b",
                messages=[{"role": "user", "content": "say: one two"}],
                stream=True,
            ):
                pass

    assert [row.outcome for row in gateway.rows_when(5)] == ["success"] * 5


@pytest.mark.parametrize("running_usage", ["vllm", "none"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_a_client_that_leaves_while_it_waits_for_a_slot_costs_the_model_server_nothing(
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
        second.leave(Leaving.FIN)
        first.read_until(1, b"[DONE]")

        rows = gateway.rows_when(2)

    left = next(row for row in rows if row.outcome == "client_disconnected")
    assert (left.generated_output_tokens, left.delivered_output_tokens) == (0, 0)
    assert not [each for each in gateway.simulator.requests() if marker in str(each)]
    assert gateway.chat("say: ok", entry.identifier).status_code == 200


def test_a_client_that_stops_reading_loses_its_slot(
    start_gateway: Callable[..., Gateway],
) -> None:
    gateway = start_gateway(SVC_CLIENT_STALL_SECONDS="0.5")
    entry = publish(gateway, backend(gateway, max_concurrency=1, running_usage="vllm"))
    with RawClient(gateway) as client:
        client.chat("[[sim tokens=60000 burst=2000]]", entry.identifier, stream=True)
        client.read_until(1, b"data: ")

        (row,) = gateway.rows_when(1)

        assert (row.outcome, row.http_status) == ("client_disconnected", 499)
        assert 0 < row.generated_output_tokens < 60_000
        assert row.delivered_output_tokens < row.generated_output_tokens
        assert gateway.chat("say: ok", entry.identifier).status_code == 200


def test_a_client_may_pause_for_longer_than_a_model_server_may(gateway: Gateway) -> None:
    entry = publish(gateway, backend(gateway, idle_seconds=1, running_usage="vllm"))
    with RawClient(gateway) as client:
        client.patience(60)
        client.chat("[[sim tokens=60000 burst=2000]]", entry.identifier, stream=True)
        client.read_until(1, b"data: ")
        # The pause itself is what is tested: more than twice the model server's patience.
        time.sleep(2.5)
        client.read_until(1, b"[DONE]")

        row = gateway.row(client.request_id)

    assert (row.outcome, row.delivered_output_tokens) == ("success", 60_000)


def test_nobody_who_only_half_sent_a_request_is_a_row(gateway: Gateway) -> None:
    for how in (Leaving.FIN, Leaving.RST):
        with RawClient(gateway) as client:
            client.head("content-length: 1000", key=gateway.key)
            client.send(b'{"model": "acme/demo-8b"')
            client.leave(how)

    assert gateway.chat("say: ok").status_code == 200
    assert len(gateway.rows()) == 1


def test_hang_ups_leave_no_trace_of_trouble_in_the_log(
    gateway: Gateway, worker_directory: Path
) -> None:
    log = worker_directory / "gateway.log"
    before = len(log.read_text())
    for _ in range(10):
        with RawClient(gateway) as client:
            client.chat("say: a b c d e f g", stream=True)
            client.read_until(8, b"data: ")
            client.leave(Leaving.RST)
    gateway.rows_when(10)

    assert "ERROR" not in log.read_text()[before:]
