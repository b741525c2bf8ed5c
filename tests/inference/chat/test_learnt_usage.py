"""What a streamed answer shows of its server's running usage, while the dialect is not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from inference.chat.meter import Meter
from inference.chat.relays.stream import StreamRelay
from inference.wire.dialects import RunningUsage
from tests.fuzz.test_backend_streams import IDENTITY
from tests.support.model_servers.scripted import (
    CONTENT,
    DONE,
    FINISH,
    PROMPT_TOKENS,
    ROLE,
    TOKENS,
    USAGE,
    chunk,
    frames,
    usage,
)

Chunk = dict[str, Any] | str


def with_usage(*chunks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**chunk, "usage": usage(number)} for number, chunk in enumerate(chunks)]


def with_timings(*chunks: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {**chunk, "timings": {"cache_n": 3, "prompt_n": PROMPT_TOKENS - 3, "predicted_n": number}}
        for number, chunk in enumerate(chunks, 1)
    ]


END: list[Chunk] = [FINISH, USAGE, DONE]
BOTH_TEXTS = {"reasoning_content": "One", "content": " two"}
FOREIGN = [
    [1],
    "fast",
    {"total_ms": 12.5},
    {"predicted_n": 3},
    {"prompt_n": "7"},
    {"prompt_n": PROMPT_TOKENS, "predicted_n": 3},
]
STREAMS: dict[str, tuple[list[Chunk], RunningUsage | None]] = {
    "usage on each chunk": ([*with_usage(ROLE, *CONTENT), *END], RunningUsage.VLLM),
    "usage on each chunk, cut": ([*with_usage(ROLE, *CONTENT[:2])], RunningUsage.VLLM),
    "usage on each chunk, cut after one piece": ([*with_usage(ROLE, *CONTENT[:1])], None),
    "usage of zero until the end": (
        [*({**chunk, "usage": usage(0, 0)} for chunk in (ROLE, *CONTENT)), *END],
        RunningUsage.NONE,
    ),
    "output of zero until the end": (
        [*({**chunk, "usage": usage(0)} for chunk in (ROLE, *CONTENT)), *END],
        RunningUsage.NONE,
    ),
    "output that does not grow": (
        [*({**chunk, "usage": usage(1)} for chunk in (ROLE, *CONTENT)), *END],
        RunningUsage.NONE,
    ),
    "usage with the first piece alone": (
        [ROLE, {**CONTENT[0], "usage": usage(1)}, *CONTENT[1:], *END],
        RunningUsage.NONE,
    ),
    "two pieces with the finish reason": (
        [ROLE, chunk(BOTH_TEXTS, finish_reason="stop"), USAGE, DONE],
        None,
    ),
    "text held back until the end, where llama.cpp's timings always are": (
        [ROLE, *CONTENT, FINISH, {**USAGE, **with_timings(*CONTENT)[-1], **USAGE}, DONE],
        None,
    ),
    "two pieces of one token, then its timings": (
        [ROLE, CONTENT[0], *with_timings(CONTENT[1]), *END],
        None,
    ),
    "timings on each chunk": ([ROLE, *with_timings(*CONTENT), *END], RunningUsage.LLAMA_CPP),
    "timings, cut": ([ROLE, *with_timings(*CONTENT[:2])], RunningUsage.LLAMA_CPP),
    "usage at the end": ([ROLE, *CONTENT, *END], RunningUsage.NONE),
    "usage with the finish reason": (
        [ROLE, *CONTENT, {**FINISH, "usage": usage()}, DONE],
        RunningUsage.NONE,
    ),
    "usage with the role alone": (
        [{**ROLE, "usage": usage(0)}, *CONTENT, *END],
        RunningUsage.NONE,
    ),
    "no usage, cut": ([ROLE, *CONTENT[:2]], RunningUsage.NONE),
    "one piece": ([ROLE, CONTENT[0], *END], None),
    "no piece": ([ROLE, *END], None),
    **{
        f"timings of another form: {timings}": (
            [ROLE, *({**chunk, "timings": timings} for chunk in CONTENT), *END],
            RunningUsage.NONE,
        )
        for timings in FOREIGN
    },
}


def relayed(chunks: Sequence[Chunk]) -> tuple[Meter, StreamRelay]:
    meter = Meter(IDENTITY, 0.0)
    relay = StreamRelay(meter, 0, RunningUsage.AUTO)
    for frame in frames(*chunks):
        relay.feed(frame)
    return meter, relay


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_shows_how_its_server_reports(name: str) -> None:
    chunks, expected = STREAMS[name]

    meter, relay = relayed(chunks)

    assert relay.running_usage is expected
    if DONE in chunks:
        assert meter.reported
        assert (meter.reported_input, meter.reported_output) == (PROMPT_TOKENS, TOKENS)


REPORTED = with_usage(ROLE, *CONTENT[:2])
UNREPORTED: dict[str, tuple[list[dict[str, Any]], int]] = {
    "a report with each text": (REPORTED, 0),
    "texts without one behind it": ([*REPORTED, *CONTENT[2:]], len(CONTENT[2:])),
    "an empty one behind it": (
        [*REPORTED, *({**chunk, "usage": {}} for chunk in CONTENT[2:])],
        len(CONTENT[2:]),
    ),
    "one of no output": ([{**chunk, "usage": usage(0)} for chunk in CONTENT], len(CONTENT)),
    "none": ([*CONTENT], len(CONTENT)),
}


@pytest.mark.parametrize("name", UNREPORTED)
def test_texts_are_counted_that_no_report_contains(name: str) -> None:
    chunks, expected = UNREPORTED[name]

    assert relayed(chunks)[0].unreported_pieces == expected
