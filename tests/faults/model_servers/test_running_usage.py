"""Running usage in llama.cpp's dialect: billing, and reports that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clients.raw_client import Disconnect, RawClient
from tests.support.faults.case import Case, publish_on, single
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
)

CACHED = 3
LONG = Pause(30)


def timings(predicted: object, prompt: object = PROMPT_TOKENS - CACHED) -> dict[str, Any]:
    return {"timings": {"cache_n": CACHED, "prompt_n": prompt, "predicted_n": predicted}}


def timed(count: int) -> list[dict[str, Any]]:
    """The role, which comes without timings, and the first ``count`` words with theirs."""
    return [ROLE, *({**word, **timings(made + 1)} for made, word in enumerate(CONTENT[:count]))]


@pytest.fixture
def case(gateway: Gateway, scripted: ScriptedServer) -> Case:
    only = single(
        gateway,
        base_url=scripted.base_url,
        running_usage="llama.cpp",
        first_byte_seconds=10,
        idle_seconds=10,
        disconnect_drain_seconds=5,
    )
    return Case(gateway, publish_on(gateway, only), [scripted.requests])


def say(scripted: ScriptedServer, steps: list[Step], produced: int) -> None:
    scripted.say(Script(steps, produced), scripted.whole)


def test_a_whole_stream_is_asked_for_in_its_dialect_and_ends_with_the_last_figures(
    case: Case, scripted: ScriptedServer
) -> None:
    say(scripted, stream(*timed(TOKENS), FINISH, {**USAGE, **timings(TOKENS)}, DONE), TOKENS)

    seen = case.ask(streamed=True)

    assert seen.complete
    (asked,) = scripted.requests_of(seen.marker)
    assert asked["body"]["timings_per_token"] is True
    assert asked["body"]["stream_options"] == {"include_usage": True}
    (row,) = case.check(1)
    assert row.backend_reported_input_tokens == PROMPT_TOKENS
    assert row.backend_reported_output_tokens == TOKENS


def test_a_stream_without_usage_at_its_end_is_billed_by_its_running_usage(
    case: Case, scripted: ScriptedServer
) -> None:
    say(scripted, stream(*timed(TOKENS), FINISH, DONE), TOKENS)

    seen = case.ask(streamed=True)

    assert seen.complete
    (row,) = case.check(1)
    assert (row.backend_reported_input_tokens, row.backend_reported_output_tokens) == (
        PROMPT_TOKENS,
        TOKENS,
    )


@pytest.mark.parametrize("words", [0, 2])
def test_a_disconnected_client_pays_for_the_last_reported_counts(
    case: Case, scripted: ScriptedServer, words: int
) -> None:
    # Before the first word the row has to wait for it, and for nothing more.
    late: list[Step] = [Pause(0.5), *stream(*timed(1))[2:-1]] if not words else []
    say(scripted, [*stream(*timed(words))[:-1], *late, LONG], max(words, 1))
    with RawClient(case.gateway) as client:
        client.chat("hello", case.model, stream=True)
        client.read_until(1 + words, b"data: ")
        client.disconnect(Disconnect.FIN)

        (row,) = case.gateway.rows_when(1, 4)

    assert (row.outcome, row.http_status) == ("client_disconnected", 499)
    assert row.backend_reported_input_tokens == PROMPT_TOKENS
    assert row.backend_reported_output_tokens == max(words, 1)


IMPOSSIBLE = {
    "negative": timings(-1),
    "absent": timings(None),
    "no prompt": timings(2, None),
    "shrinking": timings(0),
    "not a number": timings("many"),
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
