"""Clients that disconnect or stop reading, at every stage; every case ends with the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.faults.case import Case, publish_on, publish_single, single
from tests.support.faults.seen import CAP, Seen, new_marker, read_answer
from tests.support.gateways import IMPATIENT
from tests.support.live import Gateway
from tests.support.live_catalog import served_models
from tests.support.model_servers.scripted import (
    DONE,
    FINISH,
    ROLE,
    TOKENS,
    Pause,
    Script,
    ScriptedServer,
    body,
    chunk,
    completion,
    stream,
    usage,
)
from tests.support.until import until

SLOW = "[[sim first=0.1 tokens=80 pace=100]]"


@pytest.fixture
def case(gateway: Gateway, running: bool) -> Case:
    model = publish_single(gateway, gateway.simulator.base_url, running=running)
    return Case(gateway, model, [gateway.simulator.requests])


def without_chunks(raw: bytes) -> bytes:
    """The part of a chunked answer's body that has arrived."""
    body = b""
    while raw:
        length, separator, raw = raw.partition(b"\r\n")
        if not separator or not length:
            break
        size = int(length, 16)
        body += raw[:size]
        raw = raw[size + 2 :]
    return body


def seen_by(client: RawClient, marker: str, *, streamed: bool) -> Seen:
    """The answer that ``client`` has read so far."""
    head, blank_line, body = client.received.partition(b"\r\n\r\n")
    if not blank_line:
        return Seen(marker, streamed)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = without_chunks(body)
    # An incomplete frame does not count.
    if streamed:
        body = body[: body.rfind(b"\n\n") + 2] if b"\n\n" in body else b""
    return read_answer(marker, int(first.split()[1]), headers, body)


def begin(client: RawClient, case: Case, text: str, *, streamed: bool) -> str:
    marker = new_marker()
    client.chat(f"{marker}. {text}", case.model, stream=streamed, max_completion_tokens=CAP)
    return marker


@pytest.mark.parametrize("how", Disconnect, ids=lambda how: how.value)
def test_a_disconnect_before_the_first_byte(
    case: Case, how: Disconnect, streamed: bool, running: bool
) -> None:
    with RawClient(case.gateway) as client:
        marker = begin(client, case, "[[sim first=0.3 tokens=4]]", streamed=streamed)
        # Once the request is admitted it holds the only slot: another request has to wait.
        until(lambda: is_running(case))
        client.disconnect(how)
        case.seen.append(Seen(marker, streamed))

        (row,) = case.check(1)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.delivered_output_tokens == 0
    if not (running and streamed):
        # Nothing reports while it runs: the answer was read to its end for its figures.
        assert row.backend_reported_output_tokens == 4


def is_running(case: Case) -> bool:
    """Whether the journal has an admitted request of the organization that has not ended."""
    organization_id = str(case.gateway.organization.pk)
    directory = case.gateway.command.log.parent / "journal"
    return any(organization_id in path.read_text() for path in directory.glob("*.log"))


@pytest.mark.parametrize("how", Disconnect, ids=lambda how: how.value)
def test_a_disconnect_at_the_end_is_a_success(case: Case, how: Disconnect, streamed: bool) -> None:
    last = b"[DONE]\n\n" if streamed else b'"request_id":'
    with RawClient(case.gateway) as client:
        marker = begin(client, case, "[[sim tokens=4]]", streamed=streamed)
        client.read_until(1, last)
        client.disconnect(how)
        case.seen.append(seen_by(client, marker, streamed=streamed))

        rows = case.check()

    assert [row.outcome for row in rows] == ["success"]


def large_stream() -> Script:
    """A stream larger than the socket buffers, with running usage."""
    words = [chunk({"content": "x" * 200_000}, usage=usage(number + 1)) for number in range(100)]
    return Script(stream(ROLE, *words, FINISH, DONE), 100)


def large_body() -> Script:
    message = {"content": "x" * 10_000_000}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Script([body(completion(choices=choices))], TOKENS)


@pytest.fixture
def large(
    gateway: Gateway,
    gateway_with: Callable[..., Gateway],
    scripted: ScriptedServer,
    running: bool,
) -> Case:
    """A model whose answers do not fit into the buffers between server and client."""
    scripted.say(large_stream(), large_body())
    model = publish_single(gateway, scripted.base_url, running=running)
    impatient = gateway_with(**IMPATIENT)
    until(lambda: model in served_models(impatient))
    return Case(impatient, model, [scripted.requests])


def test_a_client_that_stops_reading_a_stream_counts_as_disconnected(
    large: Case, scripted: ScriptedServer
) -> None:
    with RawClient(large.gateway) as client:
        marker = begin(client, large, "", streamed=True)
        client.read_until(1, b"data: ")
        large.seen.append(seen_by(client, marker, streamed=True))

        (row,) = large.agree(1)

        assert (row.outcome, row.http_status) == ("client_disconnected", 499)
        assert row.delivered_output_tokens < row.generated_output_tokens <= 100
        scripted.heal()
        large.check(1)


def test_a_client_that_never_reads_a_whole_answer_holds_no_slot(
    large: Case, scripted: ScriptedServer
) -> None:
    with RawClient(large.gateway) as client:
        marker = begin(client, large, "", streamed=False)
        large.seen.append(Seen(marker, streamed=False))
        large.agree(1)
        scripted.heal()

        (row,) = large.check(1)

        assert row.outcome == "success"


def test_a_request_of_a_disconnected_client_is_not_retried(
    gateway: Gateway, scripted: ScriptedServer, streamed: bool
) -> None:
    full = Script([Pause(0.5), body(b"{}", 503)])
    scripted.say(full, full)
    pair = [single(gateway, base_url=scripted.base_url, first_byte_seconds=5) for _ in range(2)]
    case = Case(gateway, publish_on(gateway, *pair), [scripted.requests])
    with RawClient(gateway) as client:
        marker = begin(client, case, "", streamed=streamed)
        until(lambda: scripted.requests_of(marker))
        client.disconnect(Disconnect.FIN)

        (row,) = gateway.rows_when(1)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert (row.backend_reported_input_tokens, row.generated_output_tokens) == (0, 0)
    assert len(scripted.requests_of(marker)) == 1
