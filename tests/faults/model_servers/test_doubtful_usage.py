"""Usage that is reported too early to be final, and usage that is larger than it can be."""

from __future__ import annotations

import pytest

from tests.support.clients.raw_client import leave
from tests.support.faults.case import patient, publish_on, single
from tests.support.faults.oracle import TOKEN_LIMIT
from tests.support.faults.seen import ask
from tests.support.live import Gateway
from tests.support.metrics import metrics
from tests.support.model_servers.scripted import (
    DONE,
    FINISH,
    ROLE,
    Pause,
    Script,
    ScriptedServer,
    chunk,
    stream,
    usage,
)
from usage.models import UsageRow

WORDS = [chunk({"content": f" w{number}"}) for number in range(40)]
FINAL = chunk(None, usage=usage(40, 20))


def with_usage(event: dict[str, object], tokens: int) -> dict[str, object]:
    return {**event, "usage": usage(tokens, 20)}


def served(gateway: Gateway, model: str) -> UsageRow:
    """The row of a stream that the client read to its end."""
    assert ask(gateway, model, "hello", streamed=True).complete
    (row,) = gateway.rows_when(1)
    return row


@pytest.mark.parametrize("reported", [0, 37])
def test_text_after_the_last_report_is_counted_and_not_billed(
    reported: int, gateway: Gateway, scripted: ScriptedServer
) -> None:
    """Usage comes with the role, or with each of the first words; what follows is our own count."""
    model = publish_on(gateway, single(gateway, base_url=scripted.base_url))
    words = [with_usage(word, made + 1) for made, word in enumerate(WORDS[:reported])]
    steps = stream(with_usage(ROLE, 0), *words, *WORDS[reported:], FINISH, DONE)
    scripted.say(Script(steps, 40), scripted.whole)

    row = served(gateway, model)

    assert (row.outcome, row.backend_reported_output_tokens) == ("success", reported)
    assert row.generated_output_tokens == row.delivered_output_tokens >= 40
    unreported = metrics(gateway).sum("svc_unreported_tokens_total", model=model)
    assert unreported == row.generated_output_tokens - reported


def test_an_empty_report_is_none(gateway: Gateway, scripted: ScriptedServer) -> None:
    """Some servers send ``"usage": {}`` where others send null."""
    model = publish_on(gateway, single(gateway, base_url=scripted.base_url))
    empty = [{**word, "usage": {}} for word in WORDS]
    scripted.say(Script(stream(ROLE, *empty, FINISH, FINAL, DONE), 40), scripted.whole)

    row = served(gateway, model)

    assert (row.outcome, row.backend_reported_output_tokens) == ("success", 40)


def test_a_left_stream_is_read_on_until_a_report_contains_all_of_it(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    backend = patient(gateway, scripted, running_usage="vllm", disconnect_drain_seconds=5)
    model = publish_on(gateway, backend)
    paced = [step for word in WORDS for step in (*stream(word)[1:-1], Pause(0.02))]
    begin, end = stream(with_usage(ROLE, 0))[:-1], stream(FINISH, FINAL, DONE)[1:]
    scripted.say(Script([*begin, *paced, *end], 40), scripted.whole)

    leave(gateway, model, 31)
    (row,) = gateway.rows_when(1)

    assert row.outcome == "client_disconnected"
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (20, 40)
    assert 25 <= row.delivered_output_tokens <= 40


@pytest.mark.parametrize(
    ("cap", "tokens", "exceeded"),
    [(10, 40, "output_cap"), (None, 1_200_000, "context"), (None, 40, None), (40, 40, None)],
)
def test_a_report_above_the_cap_or_the_context_is_billed_and_counted(
    cap: int | None, tokens: int, exceeded: str | None, gateway: Gateway, scripted: ScriptedServer
) -> None:
    model = publish_on(gateway, single(gateway, base_url=scripted.base_url))
    final = chunk(None, usage=usage(tokens, 20))
    scripted.say(Script(stream(ROLE, *WORDS, FINISH, final, DONE), tokens), scripted.whole)

    gateway.chat("hello", model, stream=True, **({"max_tokens": cap} if cap else {}))
    (row,) = gateway.rows_when(1)

    assert (row.outcome, row.backend_reported_output_tokens) == ("success", tokens)
    counted = metrics(gateway)
    for bound in ("output_cap", "context"):
        number = counted.sum("svc_improbable_usage_total", model=model, exceeded=bound)
        assert number == (bound == exceeded)


def test_a_prompt_that_nobody_reported_uses_the_limit_all_the_same(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    model = publish_on(gateway, patient(gateway, scripted, disconnect_drain_seconds=0.3))
    paced = [step for word in WORDS for step in (*stream(word)[1:-1], Pause(0.1))]
    scripted.say(Script([*stream(ROLE)[:-1], *paced], 40), scripted.whole)
    most_of_the_limit = "x" * (3 * TOKEN_LIMIT)  # a token is estimated as four bytes

    leave(gateway, model, 4, most_of_the_limit, max_tokens=100)
    (row,) = gateway.rows_when(1)
    again = ask(gateway, model, most_of_the_limit, streamed=False, max_completion_tokens=100)

    assert (row.outcome, row.backend_reported_input_tokens) == ("client_disconnected", 0)
    assert again.status == 429
    assert len(gateway.rows_when(1)) == 1
