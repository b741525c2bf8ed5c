"""A usable reference clip is decoded exactly, in every layout that recorders write."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from speech.audio.wav import canonical_wav, clip_from_base64, read_clip
from tests.support.builders.clips import (
    EXTENSIBLE,
    FLOAT,
    PCM,
    base64_of,
    chunk,
    encoded,
    layout,
    riff,
    voice,
    wav,
)


@pytest.mark.parametrize(
    ("bits", "floating", "tolerance"),
    [
        (8, False, 1 / 64),
        (16, False, 1e-4),
        *((n, False, 1e-6) for n in (24, 32)),
        *((n, True, 1e-6) for n in (32, 64)),
    ],
)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("extensible", [False, True])
def test_every_sample_format_gives_the_same_clip(
    bits: int, floating: bool, tolerance: float, channels: int, extensible: bool
) -> None:
    wave = voice(3.5, 24_000)
    tag = FLOAT if floating else PCM
    form = (
        layout(EXTENSIBLE, channels, 24_000, bits, subtag=tag)
        if extensible
        else layout(tag, channels, 24_000, bits)
    )
    frames = np.repeat(wave[:, None], channels, axis=1)
    file = riff(chunk(b"fmt ", form), chunk(b"data", encoded(frames, bits, floating=floating)))
    clip = read_clip(file)
    assert clip.rate == 24_000
    assert clip.seconds == 3.5
    assert clip.samples.dtype == np.float32
    assert np.abs(clip.samples - wave).max() < tolerance
    # An independent reader sees the same samples.
    oracle, rate = soundfile.read(io.BytesIO(file), dtype="float32", always_2d=True)
    assert rate == 24_000
    assert np.abs(oracle.mean(axis=1) - clip.samples).max() < 1e-6


@pytest.mark.parametrize("frames", [24_000, 24_001, 95_999, 96_000])
def test_the_limits_of_the_length_are_inclusive(frames: int) -> None:
    clip = read_clip(wav(voice(13, 8_000)[:frames], 8_000))
    assert clip.seconds == frames / 8_000


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 192_000])
def test_every_usual_rate_is_read(rate: int) -> None:
    assert read_clip(wav(voice(3, rate), rate)).rate == rate


def at(form: bytes, *after: bytes) -> bytes:
    return riff(chunk(b"fmt ", form), *after)


VOICE = encoded(voice())
LISTS = chunk(b"LIST", b"INFO" + chunk(b"LIST", b"INFO" + chunk(b"ISFT", b"x" * 7)))
FIVE_SECONDS = {
    "chunks around the audio are skipped": riff(
        *(chunk(b"JUNK", b"\0" * 29), chunk(b"fmt ", layout() + b"\0\0"), LISTS),
        *(chunk(b"fact", b"\0\0\0\0"), chunk(b"data", VOICE)),
        chunk(b"LIST", b"INFO", size=0xFFFFFF),
    ),
    **{
        f"a recording from a pipe, of size {size:#x}": riff(
            chunk(b"fmt ", layout()), chunk(b"data", VOICE, size=size), size=size
        )
        for size in (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7FFFF000)
    },
    "the size in the RIFF header is ignored": wav()[:4] + b"\x10\0\0\0" + wav()[8:],
    "half a frame at the end is dropped": at(layout(), chunk(b"data", VOICE + b"\1")),
    "a quiet recording": wav(voice() * 0.02),
    "a quiet recording of 8 bits": wav(voice() * 0.06, bits=8),
    "clipped peaks": wav(np.clip(voice() * 3, -1, 1)),
}


@pytest.mark.parametrize("file", FIVE_SECONDS.values(), ids=FIVE_SECONDS)
def test_a_usable_file_is_read_whole(file: bytes) -> None:
    assert read_clip(file).seconds == 5.0


@pytest.mark.parametrize("prefix", ["", "data:audio/wav;base64,"])
def test_base64_is_accepted_plain_and_as_a_data_url(prefix: str) -> None:
    assert clip_from_base64(prefix + base64_of(wav())).seconds == 5.0


def test_two_channels_become_their_mean_and_do_not_cancel_out() -> None:
    left, right = voice(f0=120), voice(f0=170)
    clip = read_clip(wav(np.stack([left, right], axis=1), channels=2))
    assert np.abs(clip.samples - (left + right) / 2).max() < 1e-4
    clip = read_clip(wav(np.stack([left, -left], axis=1), channels=2))
    assert np.abs(np.abs(clip.samples) - np.abs(left)).max() < 1e-4


@pytest.mark.parametrize("scale", [4.0, 32_768.0, 1e37])
def test_floats_beyond_full_scale_are_scaled_down(scale: float) -> None:
    clip = read_clip(wav(voice() * scale, bits=32, floating=True))
    assert np.abs(clip.samples).max() == pytest.approx(1.0)


def test_the_canonical_file_has_the_same_sound_and_nothing_else() -> None:
    content = encoded(voice())
    secret = chunk(b"LIST", b"INFO" + chunk(b"IART", b"somebody's name"))
    clip = read_clip(riff(chunk(b"fmt ", layout()), secret, chunk(b"data", content)))
    file = canonical_wav(clip)
    assert len(file) == 44 + len(content)
    assert b"somebody" not in file
    again = read_clip(file)
    assert again.rate == clip.rate
    assert np.abs(again.samples - clip.samples).max() < 1e-4
