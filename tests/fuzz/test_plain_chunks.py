"""The short way of a chunk that holds only a text gives the same bytes and counts as the full way."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ApiError, BackendProtocolError
from inference.chat.meter import Identity, Meter
from inference.chat.relays.stream import StreamRelay
from inference.wire.answers import CompletionDetails, PromptDetails, Usage
from inference.wire.dialects import RunningUsage
from tests.fuzz.test_backend_streams import GOOD, IDENTITY, PIECES
from tests.support.fuzzing.mutations import damaged, split


class FullWay(StreamRelay):
    """Relays every chunk on the full way."""

    @property
    def _plain_head(self) -> bytes:
        return b""

    @_plain_head.setter
    def _plain_head(self, _head: bytes) -> None:
        pass


class FullMeter(Meter):
    """Checks every usage on the full way, which empty details require and which change no count."""

    __slots__ = ()

    def take_usage(self, usage: Usage) -> None:
        details = usage.prompt_tokens_details or PromptDetails()
        super().take_usage(msgspec.structs.replace(usage, prompt_tokens_details=details))


texts = st.none() | st.sampled_from(["", "x", 'a"b\\', "\n", "é\u2028\x85", "\U0001f600", "\x7f"])
texts |= st.text(max_size=8)
CALLS: list[Any] = [None, [], [{"index": 0, "id": "c", "function": {"name": "f"}}]]
counts = st.none() | st.integers(-1, 12)

# Changes to a plain chunk, by the object that they are made in; few at a time, because most end a stream.
CHANGES: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "delta": {
        "role": st.sampled_from(["assistant", None]),
        "content": texts,
        "reasoning_content": texts,
        "reasoning": texts,
        "refusal": texts,
        "tool_calls": st.sampled_from(CALLS),
    },
    "choice": {
        "delta": st.none(),
        "index": st.integers(0, 2),
        "finish_reason": st.sampled_from([None, "", "stop", "odd"]),
        "logprobs": st.sampled_from([None, {"content": [{"token": "x", "logprob": -1.0}]}]),
        "stop_reason": st.none(),
    },
    "chunk": {
        "choices": st.sampled_from([[], None]),
        "usage": st.none()
        | st.fixed_dictionaries(
            {"prompt_tokens": st.sampled_from([3, 4, None]), "completion_tokens": counts},
            optional={
                "prompt_tokens_details": st.sampled_from([None, {}, {"cached_tokens": 2}]),
                "completion_tokens_details": st.sampled_from([None, {}, {"reasoning_tokens": 1}]),
            },
        ),
        "timings": st.fixed_dictionaries({"prompt_n": st.just(3), "predicted_n": counts}),
        "system_fingerprint": st.sampled_from([None, "fp_1", "no fingerprint", "fp_2"]),
        "service_tier": st.sampled_from([None, "default"]),
        "error": st.sampled_from([None, {}]),
    },
}
changes = st.sampled_from(
    [(place, member) for place, members in CHANGES.items() for member in members]
).flatmap(lambda at: st.tuples(st.just(at), CHANGES[at[0]][at[1]]))


@st.composite
def chunk_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the chunks of a plain stream with running usage, some of them changed."""
    found = []
    for number in range(draw(st.integers(0, 8))):
        delta: dict[str, Any] = {"content": draw(st.just("x") | texts)}
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": None}
        usage = {"prompt_tokens": 3, "completion_tokens": number}
        chunk: dict[str, Any] = {"choices": [choice], "usage": usage}
        places = {"delta": delta, "choice": choice, "chunk": chunk}
        for (place, member), value in draw(st.just([]) | st.lists(changes, max_size=2)):
            places[place][member] = value
        found.append(chunk)
    return found


def framed(parts: list[dict[str, Any]]) -> bytes:
    return b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts)


streams = chunk_lists().map(framed) | damaged(GOOD, PIECES)


def relayed(relay: StreamRelay, reads: list[bytes]) -> tuple[bytes, str | None]:
    """Return the client's bytes, and the name of the failure."""
    sent = b""
    try:
        for read in [*reads, b""]:
            sent += relay.feed(read)
        return sent + relay.last(), None
    except ApiError as error:
        return sent + relay.unsent, f"{type(error).__name__}: {error.message}"


def counted(meter: Meter) -> tuple[Any, ...]:
    return (
        meter.reported,
        meter.reported_input,
        meter.reported_output,
        meter.reported_reasoning,
        meter.cached_input,
        meter.fingerprint,
        meter.pieces,
        meter.first_token is None,
    )


@settings(max_examples=300)
@given(
    shape=st.sampled_from(["chat", "tools"]),
    running_usage=st.sampled_from(RunningUsage),
    data=st.data(),
    stream=streams,
)
def test_both_ways_make_the_same_bytes_and_counts(
    shape: str, running_usage: RunningUsage, data: st.DataObject, stream: bytes
) -> None:
    identity: Identity = msgspec.structs.replace(IDENTITY, shape=shape)
    reads = data.draw(split(stream))
    meter, full = Meter(identity, 0.0), FullMeter(identity, 0.0)
    short_way = relayed(StreamRelay(meter, 0, running_usage), reads)

    assert short_way == relayed(FullWay(full, 0, running_usage), reads)
    assert counted(meter) == counted(full)


usage_structs = st.builds(
    Usage,
    counts,
    counts,
    st.sampled_from([None, CompletionDetails(), CompletionDetails(2)]),
    st.sampled_from([None, PromptDetails(), PromptDetails(1)]),
)


@given(reports=st.lists(usage_structs, max_size=6), largest=st.integers(0, 12))
def test_both_ways_take_the_same_usage(reports: list[Usage], largest: int) -> None:
    meter, full = Meter(IDENTITY, 0.0, largest), FullMeter(IDENTITY, 0.0, largest)
    for report in reports:
        taken = []
        for each in (meter, full):
            try:
                each.take_usage(report)
                taken.append(True)
            except BackendProtocolError:
                taken.append(False)
        assert taken[0] == taken[1]
        assert counted(meter) == counted(full)
