"""Damaged reference clips and cursors: accepted or refused as documented, in little time and memory."""

from __future__ import annotations

import base64
import struct
import tracemalloc
from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidCursor
from speech.audio.wav import (
    MAX_SECONDS,
    MIN_SECONDS,
    Clip,
    UnusableClip,
    canonical_wav,
    clip_from_base64,
)
from tests.support.builders import clips
from tests.support.fuzzing.mutations import damaged, within
from usage.queries import cursors
from usage.queries.cursors import Cursor

RATE = 8000
VOICE = clips.voice(3.2, RATE)
STEREO = np.column_stack([VOICE, VOICE])
EXTENSIBLE = clips.layout(clips.EXTENSIBLE, 1, RATE, 16, subtag=clips.PCM)
WAVS = [
    clips.wav(VOICE, RATE),
    clips.wav(VOICE, RATE, 8),
    clips.wav(VOICE, RATE, 32, floating=True),
    clips.wav(STEREO, RATE, 24, channels=2),
    clips.riff(
        clips.chunk(b"LIST", b"INFO"),
        clips.chunk(b"fmt ", EXTENSIBLE),
        clips.chunk(b"data", clips.encoded(VOICE)),
    ),
]
HEADS = [wav[:80] for wav in WAVS]
PIECES = [
    *(
        b"RIFF",
        b"WAVE",
        b"fmt ",
        b"data",
        b"LIST",
        b"RF64",
        b"ID3",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
    ),
    *(struct.pack("<I", size) for size in (0, 1, 2**31 - 1, 2**31, 0x7FFFF000)),
    *(struct.pack("<f", value) for value in (float("nan"), float("inf"), 3e38)),
]


@st.composite
def damaged_wavs(draw: st.DrawFn) -> bytes:
    """Draw WAV files that are damaged mostly in front, where their headers are."""
    wav = draw(st.sampled_from(WAVS))
    head = draw(damaged([wav[:80]], PIECES))
    rest = draw(st.sampled_from([wav[80:], wav[80:2000], b""]))
    return head + rest


def read(text: str) -> Clip | None:
    """Return the clip, or None when it is refused with a reason."""
    try:
        return clip_from_base64(text)
    except UnusableClip as unusable:
        reason = unusable.reason
    assert reason.endswith(".")
    return None


@given(content=damaged_wavs())
def test_any_file_is_a_clip_or_unusable(content: bytes) -> None:
    with within(0.5):
        clip = read(base64.b64encode(content).decode())
    if clip is None:
        return
    assert MIN_SECONDS <= clip.seconds <= MAX_SECONDS
    assert np.isfinite(clip.samples).all()
    assert np.abs(clip.samples).max() <= 1
    again = clip_from_base64(base64.b64encode(canonical_wav(clip)).decode())
    assert len(again.samples) == len(clip.samples)


@given(
    text=st.text(max_size=200)
    | damaged([base64.b64encode(WAVS[0][:120])]).map(lambda content: content.decode("latin-1"))
)
def test_any_text_is_a_clip_or_unusable(text: str) -> None:
    clip = read(text)
    assert clip is None or clip.seconds >= MIN_SECONDS


@given(size=st.integers(0, 2**32 - 1), head=st.sampled_from(HEADS))
def test_a_claimed_size_takes_no_memory(size: int, head: bytes) -> None:
    at = head.find(b"data") + 4
    content = head[:at] + struct.pack("<I", size) + b"\0" * 64
    text = base64.b64encode(content).decode()
    tracemalloc.start()
    try:
        clip_from_base64(text)
    except UnusableClip:
        _, peak = tracemalloc.get_traced_memory()
        assert peak < 256 * 1024
    finally:
        tracemalloc.stop()


GOOD_CURSORS = [
    cursors.encode(Cursor(moment, "req_" + "0a" * 16)).encode()
    for moment in (datetime(2026, 11, 20, 1, 2, 3, 456_000, UTC), datetime(1, 1, 1, tzinfo=UTC))
]


@given(content=damaged(GOOD_CURSORS, [b"=", b"-", b"_", b"+", b"/", b"\n", b"%00", b"A" * 70]))
def test_a_damaged_cursor_is_a_valid_position_or_refused(content: bytes) -> None:
    text = content.decode("latin-1")
    with within(0.1):
        try:
            cursor = cursors.decode(text)
        except InvalidCursor:
            return
    assert cursors.encode(cursor) == text
