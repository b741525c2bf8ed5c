"""Running usage in llama.cpp's dialect: billing, and reports that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.raw_client import leave
from tests.support.faults.case import Case, patient, publish_on, single
from tests.support.live import Gateway
from tests.support.model_servers.scripted import (
    CONTENT,
    DONE,
    FINISH,
    PROMPT_TOKENS,
    ROLE,
    TOKENS,
    USAGE,
    Pause,
    Script,
    ScriptedServer,
    Step,
    stream,
    usage,
)
from tests.support.servers.tcp_proxy import End
from usage.models import UsageRow

CACHED = 3
LONG = Pause(30)


def timings(predicted: object, prompt: object = PROMPT_TOKENS - CACHED) -> dict[str, Any]:
    return {"timings": {"cache_n": CACHED, "prompt_n": prompt, "predicted_n": predicted}}


def timed(count: int) -> list[dict[str, Any]]:
    """The role, which comes without timings, and the first ``count`` words with theirs."""
    return [ROLE, *({**word, **timings(made + 1)} for made, word in enumerate(CONTENT[:count]))]


@pytest.fixture
def case(gateway: Gateway, scripted: ScriptedServer) -> Case:
    only = patient(gateway, scripted, running_usage="llama.cpp", disconnect_drain_seconds=5)
    return Case(gateway, publish_on(gateway, only), [scripted.requests])


def say(scripted: ScriptedServer, steps: list[Step], produced: int) -> None:
    scripted.say(Script(steps, produced), scripted.whole)


def test_a_stream_without_usage_at_its_end_is_billed_by_its_running_usage(
    case: Case, scripted: ScriptedServer
) -> None:
    say(scripted, stream(*timed(TOKENS), FINISH, DONE), TOKENS)

    seen = case.ask(streamed=True)

    assert seen.complete
    (row,) = case.check(1)
    reported = (row.backend_reported_input_tokens, row.backend_reported_output_tokens)
    assert reported == (PROMPT_TOKENS, TOKENS)


@pytest.mark.parametrize("words", [0, 2])
def test_a_disconnected_client_pays_for_the_last_reported_counts(
    case: Case, scripted: ScriptedServer, words: int
) -> None:
    # Before the first word the row has to wait for it, and for nothing more.
    late: list[Step] = [Pause(0.5), *stream(*timed(1))[2:-1]] if not words else []
    say(scripted, [*stream(*timed(words))[:-1], *late, LONG], max(words, 1))
    leave(case.gateway, case.model, 1 + words)
    (row,) = case.gateway.rows_when(1)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.backend_reported_input_tokens == PROMPT_TOKENS
    assert row.backend_reported_output_tokens == max(words, 1)


@pytest.mark.parametrize("running_usage", ["auto", "llama.cpp"])
def test_timings_without_the_cached_prompt_are_no_report(
    gateway: Gateway, scripted: ScriptedServer, running_usage: str
) -> None:
    figures = {"timings": {"prompt_n": PROMPT_TOKENS - CACHED, "predicted_n": 1}}

    row = left_after_the_first_word(gateway, scripted, running_usage, figures)

    assert row.backend_reported_input_tokens == PROMPT_TOKENS
    assert row.backend_reported_output_tokens == TOKENS


@pytest.mark.parametrize("running_usage", ["auto", "vllm"])
@pytest.mark.parametrize("prompt", [0, PROMPT_TOKENS])
def test_usage_of_no_output_after_text_is_not_billed_as_the_whole(
    gateway: Gateway, scripted: ScriptedServer, running_usage: str, prompt: int
) -> None:
    figures = {"usage": usage(0, prompt)}

    for _ in range(2):
        row = left_after_the_first_word(gateway, scripted, running_usage, figures)

        assert row.backend_reported_input_tokens == PROMPT_TOKENS
        assert row.backend_reported_output_tokens == TOKENS


@pytest.mark.parametrize("running_usage", ["auto", "none"])
def test_usage_of_no_output_does_not_hide_what_a_stream_delivered_before_it_broke_off(
    gateway: Gateway, scripted: ScriptedServer, running_usage: str
) -> None:
    model = publish_on(gateway, patient(gateway, scripted, running_usage=running_usage))
    words = [{**word, "usage": usage(0, PROMPT_TOKENS)} for word in CONTENT]
    say(scripted, [*stream(ROLE, *words)[:-1], Pause(0.2), End.FIN], TOKENS)
    before = len(gateway.rows())
    gateway.chat("hello", model, stream=True)

    row = gateway.rows_when(before + 1)[-1]
    assert row.outcome != "success"
    assert row.backend_reported_output_tokens == 0
    assert row.generated_output_tokens == row.delivered_output_tokens > 0


def left_after_the_first_word(
    gateway: Gateway, scripted: ScriptedServer, running_usage: str, figures: dict[str, Any]
) -> UsageRow:
    """The row of a client that left while ``figures`` came with each chunk, and usage at the end."""
    model = publish_on(gateway, patient(gateway, scripted, running_usage=running_usage))
    first, *words = stream(*({**word, **figures} for word in CONTENT), FINISH, USAGE, DONE)[1:]
    start = stream(ROLE)[:-1]
    say(scripted, [*start, first, Pause(0.5), *words], TOKENS)
    before = len(gateway.rows())
    leave(gateway, model, 2)
    row = gateway.rows_when(before + 1)[-1]
    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    return row


IMPOSSIBLE = {
    "negative": timings(-1),
    "no prompt": timings(2, None),
    "shrinking": timings(0),
    "not an object": {"timings": [1]},
}


@pytest.mark.parametrize("figures", IMPOSSIBLE)
def test_impossible_running_usage_is_never_billed(
    case: Case, scripted: ScriptedServer, figures: str
) -> None:
    wrong = {**CONTENT[1], **IMPOSSIBLE[figures]}
    say(scripted, stream(*timed(1), wrong, FINISH, DONE), 2)

    seen = case.ask(streamed=True)

    assert seen.told == (200, "backend_protocol_error")
    (row,) = case.check(1)
    assert row.backend_reported_output_tokens == 1


def test_running_usage_of_another_dialect_is_ignored(
    gateway: Gateway, scripted: ScriptedServer
) -> None:
    model = publish_on(gateway, single(gateway, base_url=scripted.base_url))
    case = Case(gateway, model, [scripted.requests])
    wrong = {**CONTENT[0], **IMPOSSIBLE["not an object"]}
    say(scripted, stream(ROLE, wrong, *CONTENT[1:], FINISH, USAGE, DONE), TOKENS)

    assert case.ask(streamed=True).complete
    case.check(1)
