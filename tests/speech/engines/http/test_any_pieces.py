"""An answer gives the same sound in any pieces, and any bytes give sound or an engine error."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.audio.pcm import duration, samples, silence
from speech.engines import EngineError, EngineProtocolError
from speech.engines.http.audio_readers import AudioCheck, Delivery
from tests.support.builders.clips import chunk, encoded, layout, riff, voice

RATE = 22_050
RAW = encoded(voice(0.05, RATE))
TEXT = "Hello."


def wav(size: int, trailer: bytes = b"") -> bytes:
    head = (chunk(b"LIST", b"abc"), chunk(b"fmt ", layout(rate=RATE)))
    return riff(*head, chunk(b"data", RAW, size), trailer, size=0xFFFF_FFFF)


def events() -> bytes:
    deltas = [RAW[at : at + 333] for at in range(0, len(RAW), 333)]
    made = [{"type": "speech.audio.delta", "audio": base64.b64encode(d).decode()} for d in deltas]
    made.append({"type": "speech.audio.done"})
    return b": hello\r\n\r\n" + b"".join(
        b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in made
    )


ANSWERS = {
    "pcm": (Delivery("pcm", RATE, "audio/pcm"), RAW),
    "sse": (Delivery("sse", RATE, "text/event-stream"), events()),
    "exact": (Delivery("file", 24_000, "audio/wav"), wav(len(RAW))),
    "zero": (Delivery("file", 24_000, "audio/wav"), wav(0)),
    "unknown": (Delivery("file", 24_000), wav(0xFFFF_FFFF)),
    "lies": (Delivery("file", 24_000, "audio/wav"), wav(100)),
    "trailer": (Delivery("file", 24_000), wav(len(RAW), b"LIST\x04\x00\x00\x00abcd")),
}


def hear(delivery: Delivery, reads: Sequence[bytes], text: str = TEXT) -> bytes:
    check = AudioCheck(delivery, text)
    return b"".join(check.feed(read) for read in reads) + check.finish()


WHOLE = hear(*ANSWERS["pcm"][:1], [RAW])


@pytest.mark.parametrize("name", ANSWERS)
@given(cuts=st.lists(st.integers(0, 8000), max_size=40))
def test_any_cuts_make_the_same_sound(name: str, cuts: list[int]) -> None:
    delivery, content = ANSWERS[name]
    ends = [0, *sorted(cuts), len(content)]
    reads = [content[start:end] for start, end in pairwise(ends)]

    heard = samples(hear(delivery, [read for read in reads if read])).astype(int)
    # The resampler rounds differently at the edges of reads; nothing else may differ.
    assert len(heard) == len(samples(WHOLE))
    assert abs(heard - samples(WHOLE)).max() <= 3


@pytest.mark.parametrize("asked", ["file", "pcm", "sse"])
@given(
    head=st.sampled_from(
        [b"", b"RIFF\0\0\0\0WAVE", wav(0)[:60], b"fLaC", b"OggS", b"ID3", b"data: "]
    ),
    rest=st.binary(max_size=300),
    kind=st.sampled_from(
        ["", "audio/wav", "audio/mpeg", "text/event-stream", "audio/pcm;rate=8000"]
    ),
)
def test_any_bytes_are_sound_or_an_engine_error(
    asked: str, head: bytes, rest: bytes, kind: str
) -> None:
    try:
        assert hear(Delivery(asked, 24_000, kind), [head + rest] if head + rest else [])
    except EngineError:
        return


@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/plain; charset=utf-8"])
@pytest.mark.parametrize("asked", ["file", "pcm", "sse"])
def test_an_answer_of_text_is_refused(asked: str, kind: str) -> None:
    with pytest.raises(EngineProtocolError):
        AudioCheck(Delivery(asked, 24_000, kind), TEXT)


def test_an_answer_of_text_without_its_type_is_refused() -> None:
    with pytest.raises(EngineProtocolError):
        hear(Delivery("pcm", 24_000), [b'{"error": "the model is not loaded"}' * 40])


def test_silence_at_the_start_is_held_back_until_there_is_sound() -> None:
    check = AudioCheck(Delivery("pcm", 24_000), TEXT)

    assert check.feed(silence(0.5)) == b""
    assert check.feed(RAW) == silence(0.5) + RAW


def test_a_second_wav_file_behind_the_first_is_refused() -> None:
    with pytest.raises(EngineProtocolError):
        hear(Delivery("file", 24_000), [wav(len(RAW)) + wav(len(RAW))])


@pytest.mark.parametrize(
    ("content_type", "seconds"),
    [
        ("audio/pcm;rate=8000", 0.625),
        ('audio/pcm; RATE="16000"', 0.3125),
        ("audio/pcm; rate=48000; channels=2", 0.052),
        ("audio/L16; rate=48000", 0.104),
        *((f"audio/pcm;rate={rate}", None) for rate in ("1", "999999", "-8000", "many")),
    ],
)
def test_the_rate_of_the_answers_media_type_is_used_or_refused(
    content_type: str, seconds: float | None
) -> None:
    content = bytes(range(1, 251)) * 40
    if seconds is None:
        with pytest.raises(EngineProtocolError):
            hear(Delivery("pcm", 44_100, content_type), [content])
        return
    assert duration(hear(Delivery("pcm", 44_100, content_type), [content])) == pytest.approx(
        seconds, abs=0.002
    )
