"""Clients that leave, and servers that die or fall silent."""

from __future__ import annotations

import time

from tests.real.servers.upstreams import Says
from tests.real.trial import NEVER_ENDS, Trial, stopped
from tests.support.clients.raw_client import Disconnect, RawClient, leave
from tests.support.until import until

_END_OF_BODY = b"0\r\n\r\n"
_BEGUN = 3
"""Chunks after which a stream has begun. A slow proxy in between has many more waiting by then."""


def disconnect(trial: Trial, longest: int) -> int:
    """Leave a stream that only its cap of ``longest`` ends; the tokens that the server made of it."""
    llama, model = trial.llama(), trial.model()
    before = llama.be_quiet().output_tokens
    fields = {**NEVER_ENDS, "max_tokens": longest}
    leave(trial.gateway, model, 20, "go on for long", **fields)
    return llama.be_quiet().output_tokens - before


def leaving_is_metered(trial: Trial, longest: int) -> None:
    """The row of the only request has the last figures that came, the prompt included."""
    row = trial.row()
    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.backend_reported_input_tokens > 20
    assert 10 < row.backend_reported_output_tokens <= longest
    assert row.generated_output_tokens == row.backend_reported_output_tokens
    assert row.delivered_output_tokens <= row.generated_output_tokens


def leaving_a_stream(trial: Trial) -> None:
    assert disconnect(trial, 16_000) < 16_000

    leaving_is_metered(trial, 15_999)


def leaving_only_the_gateway(trial: Trial) -> None:
    """What is behind the proxy generates on, although the gateway has left the proxy."""
    before = trial.llama().counters()
    disconnect(trial, 4000)

    leaving_is_metered(trial, 3999)
    generated = trial.llama().counters().output_tokens - before.output_tokens
    assert trial.row().backend_reported_output_tokens < generated <= 4000


def leaving_before_the_first_token(trial: Trial) -> None:
    llama, model = trial.llama(), trial.model()
    llama.be_quiet()
    with RawClient(trial.gateway) as client, stopped(llama):
        client.chat("go on for long", model, stream=True, **{**NEVER_ENDS, "max_tokens": 1000})
        # Nothing shows that a stopped server has the request; it answers nobody before it goes on.
        time.sleep(0.3)
        client.disconnect(Disconnect.RST)
    llama.be_quiet()

    row = trial.row()
    assert row.outcome == "client_disconnected"
    assert row.delivered_output_tokens == 0
    assert row.backend_reported_output_tokens < 1000


def leaving_a_whole_answer(trial: Trial) -> None:
    """Figures come only at the end, so the answer is read on for as long as the backend allows."""
    llama = trial.llama()
    model = trial.published(trial.upstream.seats[Says.NOISE], disconnect_drain_seconds=60)
    before = llama.be_quiet()
    with RawClient(trial.gateway) as client:
        client.chat("go on", model, **{**NEVER_ENDS, "max_tokens": 2000})
        until(llama.busy_slots)
        client.disconnect(Disconnect.FIN)
        row = trial.row()

    after = llama.counters()
    assert row.outcome == "client_disconnected"
    assert row.backend_reported_output_tokens == after.output_tokens - before.output_tokens
    assert row.backend_reported_input_tokens == after.prompt_tokens - before.prompt_tokens


def broken_stream(trial: Trial, code: bytes) -> None:
    """The server is killed in a stream; the client is told inside of it."""
    with trial.spare() as llama, RawClient(trial.gateway) as client:
        client.set_timeout(60)
        client.chat("go on", trial.on_spare(), stream=True, **NEVER_ENDS)
        client.read_until(_BEGUN, b"data: ")
        llama.process.kill()
        client.read_until(1, _END_OF_BODY)

    assert b"[DONE]" not in client.received
    assert b'"%b"' % code in client.received
    row = trial.row()
    assert (row.outcome, row.http_status) == (code.decode(), 200)
    assert row.backend_reported_output_tokens > 0


def killed_in_a_stream(trial: Trial) -> None:
    broken_stream(trial, b"backend_unavailable")


def killed_behind_a_proxy(trial: Trial) -> None:
    broken_stream(trial, b"backend_error")


def dead_for_a_while(trial: Trial, code: str) -> None:
    """The server answers, is gone, and answers again."""
    with trial.spare():
        model = trial.on_spare()
        assert trial.post(model).status == 200

    dead = trial.post(model)
    assert dead.error is not None
    assert (dead.status, dead.error["code"]) == (500, code)

    with trial.spare():
        assert trial.post(model).status == 200
    assert [row.outcome for row in trial.gateway.rows_when(3)] == ["success", code, "success"]


def dead_and_back(trial: Trial) -> None:
    dead_for_a_while(trial, "backend_unavailable")


def dead_behind_a_proxy(trial: Trial) -> None:
    dead_for_a_while(trial, "backend_error")


def silent_in_a_stream(trial: Trial) -> None:
    with trial.spare() as llama, RawClient(trial.gateway) as client:
        client.set_timeout(60)
        client.chat("go on", trial.on_spare(idle_seconds=1), stream=True, **NEVER_ENDS)
        client.read_until(_BEGUN, b"data: ")
        with stopped(llama):
            client.read_until(1, _END_OF_BODY)

    assert b'"backend_timeout"' in client.received
    row = trial.row()
    assert (row.outcome, row.http_status) == ("backend_timeout", 200)
    assert row.backend_reported_output_tokens > 0


def silent_from_the_start(trial: Trial) -> None:
    with trial.spare() as llama:
        model = trial.on_spare(first_byte_seconds=0.5)
        with stopped(llama):
            reply = trial.post(model, stream=True)

    assert reply.error is not None
    assert (reply.status, reply.error["code"]) == (503, "backend_timeout")
    assert trial.row().outcome == "backend_timeout"
