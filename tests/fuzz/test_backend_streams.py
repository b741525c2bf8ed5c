"""Answers of model servers, damaged and cut into any reads, become valid frames or a backend's error."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from core.asgi.sse import EventReader, FrameTooLarge
from core.errors import BackendError, BackendProtocolError
from inference.chat.meter import Identity, Meter
from inference.chat.relays.stream import StreamRelay
from inference.chat.relays.whole import completion_of
from tests.support.fuzzing.mutations import damaged, split, within
from tests.support.live import events

LARGEST = 1024 * 1024
IDENTITY = Identity(
    request_id="req_" + "0" * 32,
    organization_id="organization",
    api_key_id="key",
    model_identifier="acme/demo-8b",
    model_id="model",
    model_version_id="version",
    streamed=True,
    shape="tools",
    input_price=Decimal("0.15"),
    output_price=Decimal("0.60"),
    currency="USD",
)


def chunk(**members: object) -> bytes:
    return b"data: " + json.dumps({"id": "x", "model": "m", **members}).encode()


def saying(**delta: object) -> bytes:
    return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": None}])


CALL = {"index": 0, "id": "call_1", "function": {"name": "find", "arguments": '{"a'}}
MORE = {"index": 0, "function": {"arguments": '": 1}'}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
STORIES = [
    [
        saying(role="assistant", content=""),
        saying(content="Héllo\u2028 there"),
        saying(tool_calls=[CALL]),
        saying(tool_calls=[MORE]),
        chunk(choices=[{"delta": {}, "finish_reason": "tool_calls"}], usage=USAGE),
        b"data: [DONE]",
    ],
    [
        b": comment\nid: 1\nevent: message",
        saying(reasoning="hm", content=None),
        b"data: " + b'{"choices": [],\ndata: "usage": {"prompt_tokens": 1}}',
        chunk(error={"message": "gone"}),
    ],
]
GOOD = [
    end.join([*story, b""]).replace(b"\n", line)
    for story in STORIES
    for end, line in ((b"\n\n", b"\n"), (b"\n\n", b"\r\n"), (b"\n\n", b"\r"))
]
PIECES = [
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"data: ", b"data:", b"data", b": ", b"\xef\xbb\xbf"),
    *(b'{"choices": [{}]}', b"[DONE]", b"null", b'"usage": {"completion_tokens": -1}', b"1e999"),
    *(b'"finish_reason": "abort"', b"\\ud800", b"\x00", b"[" * 2000, b"\xc2\x85", b"2147483648"),
]
STREAMS = damaged(GOOD, PIECES)


def read(reads: Sequence[bytes], largest: int = LARGEST) -> list[bytes]:
    """Return all events, also a last one without a blank line."""
    reader = EventReader(largest)
    found = [event for each in reads for event in reader.feed(each)]
    rest = reader.rest()
    return found if rest is None else [*found, rest]


@given(data=st.data(), stream=STREAMS)
def test_any_reads_hold_the_same_events(data: st.DataObject, stream: bytes) -> None:
    whole = read([stream])
    assert read(data.draw(split(stream))) == whole
    assert read([stream[at : at + 1] for at in range(len(stream))]) == whole


@given(data=st.data(), stream=STREAMS, largest=st.integers(16, 300))
def test_the_buffered_part_of_an_event_is_bounded(
    data: st.DataObject, stream: bytes, largest: int
) -> None:
    reader = EventReader(largest)
    with suppress(FrameTooLarge):
        for each in data.draw(split(stream)):
            assert all(len(event) <= largest for event in reader.feed(each))
            assert len(reader._buffer) <= largest


@given(data=st.data(), stream=STREAMS)
def test_any_stream_becomes_valid_frames_or_a_failure(data: st.DataObject, stream: bytes) -> None:
    relay, sent = StreamRelay(Meter(IDENTITY, 0.0), 0), b""
    with within(0.25):
        try:
            for each in [*data.draw(split(stream)), b""]:
                sent += relay.feed(each)
            sent += relay.last()
        except (BackendError, BackendProtocolError):
            sent += relay.unsent
    *frames, last = [*events(sent.decode()), None]
    assert last is None
    for frame in frames:
        if frame == "[DONE]":
            continue
        assert frame["model"] == "acme/demo-8b"
        assert frame["object"] == "chat.completion.chunk"
        assert all(choice["index"] == 0 for choice in frame["choices"])
        assert (frame["usage"] is None) == bool(frame["choices"])
        if frame["usage"] is not None:
            assert 0 <= frame["usage"]["completion_tokens"] < 2**31
            assert 0 <= frame["usage"]["prompt_tokens"] < 2**31
    assert not any(mark in sent for mark in (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\r"))


ANSWERS = [
    json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "content": "Hi",
                        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}],
                    },
                    "logprobs": {"content": [{"token": "Hi", "logprob": -1.5}]},
                    "finish_reason": "eos_token",
                }
            ],
            "usage": USAGE,
            "system_fingerprint": "fp_1",
        }
    ).encode()
]


@given(body=damaged(ANSWERS, PIECES) | st.binary())
def test_any_whole_answer_becomes_a_valid_answer_or_a_failure(body: bytes) -> None:
    meter = Meter(IDENTITY, 0.0)
    with within(0.25):
        try:
            answer = completion_of(body, meter, 0)
        except (BackendError, BackendProtocolError):
            return
    assert answer.model == "acme/demo-8b"
    assert 0 <= answer.usage.completion_tokens < 2**31


def test_an_endless_event_takes_bounded_memory() -> None:
    reader, read_size = EventReader(LARGEST), 64 * 1024
    tracemalloc.start()
    try:
        with suppress(FrameTooLarge):
            for _ in range(1000):
                reader.feed(b"x" * read_size)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * LARGEST
