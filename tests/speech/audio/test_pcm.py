"""PCM keeps its length, its bytes and its silent edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.audio.pcm import (
    EDGE_SECONDS,
    LONGEST_EDGE_SECONDS,
    SAMPLE_RATE,
    EdgeTrimmer,
    Joiner,
    Resampler,
    duration,
    join,
    pcm_bytes,
    samples,
    silence,
)
from tests.support.speech.listening import steepest_step


def tone(seconds: float, hertz: float = 300.0, rate: int = SAMPLE_RATE) -> bytes:
    """A cosine, which starts at its peak like a badly cut clip."""
    return pcm_bytes(0.8 * np.cos(2 * np.pi * hertz * np.arange(int(seconds * rate)) / rate))


def test_silence_has_its_length_floats_are_clipped_and_half_a_sample_is_refused() -> None:
    assert duration(silence(0.5)) == 0.5
    assert silence(0) == silence(-1) == b""
    assert samples(pcm_bytes(np.array([2.0, -2.0, 0.0]))).tolist() == [32767, -32767, 0]
    with pytest.raises(ValueError, match="buffer size"):
        samples(b"abc")


def test_parts_meet_without_a_click_and_keep_their_lengths() -> None:
    parts = [tone(0.3), tone(0.2, 1000), tone(0.001), b"", tone(0.1, 90)]
    raw, joined = b"".join(parts), join(parts)

    assert len(joined) == len(raw)
    assert steepest_step(joined) <= max(steepest_step(part) for part in parts)
    assert steepest_step(b"\0\0" + joined) < 8000 < steepest_step(b"\0\0" + raw)


def test_a_pause_is_put_between_parts_only() -> None:
    assert duration(join([tone(0.1), tone(0.1)], 0.5)) == pytest.approx(0.7)


@given(st.lists(st.integers(0, 700), max_size=12))
def test_a_part_is_the_same_in_any_pieces(lengths: list[int]) -> None:
    whole = tone(0.2)[: 2 * sum(lengths)]
    joiner, sent, at = Joiner(), b"", 0
    for length in lengths:
        sent += joiner.piece(whole[at : at + 2 * length])
        at += 2 * length
    sent += joiner.end_part()

    assert sent == join([whole])


def trimmed(*pieces: bytes) -> bytes:
    trimmer = EdgeTrimmer()
    return b"".join([*map(trimmer.piece, pieces), trimmer.end()])


def test_silence_around_a_part_is_removed_and_silence_within_is_kept() -> None:
    within = tone(0.1) + silence(0.7) + tone(0.1)

    assert trimmed(silence(0.4), within, silence(0.9)) == (
        silence(EDGE_SECONDS) + within + silence(EDGE_SECONDS)
    )
    assert trimmed(within) == within
    assert duration(trimmed(silence(0.3))) == pytest.approx(2 * EDGE_SECONDS)


def test_sound_is_passed_on_at_once_and_a_long_silence_is_not_held_back() -> None:
    trimmer = EdgeTrimmer()

    assert trimmer.piece(silence(60)) == b""
    assert trimmer.piece(tone(0.1)) == silence(EDGE_SECONDS) + tone(0.1)
    assert duration(trimmer.piece(silence(60))) == pytest.approx(60 - LONGEST_EDGE_SECONDS)
    assert trimmer.end() == silence(EDGE_SECONDS)


@given(st.lists(st.integers(0, 7000), max_size=12))
def test_a_part_is_trimmed_alike_in_any_pieces(lengths: list[int]) -> None:
    whole = silence(0.1) + tone(0.1) + silence(0.1) + tone(0.1) + silence(0.2)
    pieces, at = [], 0
    for length in lengths:
        pieces.append(whole[at : at + 2 * length])
        at += 2 * length

    assert trimmed(*pieces, whole[at:]) == trimmed(whole)


@pytest.mark.parametrize("rate", [8000, 16_000, 22_050, 44_100, 48_000])
def test_another_rate_is_resampled_to_24_khz_with_the_same_length(rate: int) -> None:
    source = tone(2.0, 440.0, rate)
    resampler = Resampler(rate)
    pieces = [resampler.piece(source[at : at + 997]) for at in range(0, len(source), 997)]
    result = b"".join(pieces) + resampler.finish()
    spectrum = np.abs(np.fft.rfft(samples(result).astype(float)))

    assert duration(result) == pytest.approx(2.0, abs=0.001)
    assert np.argmax(spectrum) / 2.0 == pytest.approx(440, abs=1)


def test_sound_at_the_common_rate_is_unchanged() -> None:
    source = tone(0.1)
    resampler = Resampler(SAMPLE_RATE)

    assert resampler.piece(source[:333]) + resampler.piece(source[333:]) == source
    assert resampler.finish() == b""
