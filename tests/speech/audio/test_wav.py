"""A usable reference clip is decoded exactly, in every layout; any other is refused with its reason."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from speech.audio.wav import UnusableClip, canonical_wav, clip_from_base64, decode_base64, read_clip
from tests.support.builders.clips import (
    A_LAW,
    ADPCM,
    EXTENSIBLE,
    FLOAT,
    MP3,
    MU_LAW,
    PCM,
    Wave,
    base64_of,
    chunk,
    encoded,
    layout,
    riff,
    voice,
    wav,
)
from tests.support.fuzzing.mutations import within


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


CONTENT = encoded(voice())
DATA = chunk(b"data", CONTENT)
FORMAT = chunk(b"fmt ", layout())


def other_format(name: str, subtype: str | None = None) -> bytes:
    """The same sound in another container or codec, by an independent writer."""
    file = io.BytesIO()
    soundfile.write(file, voice(), 16_000, format=name, subtype=subtype)
    return file.getvalue()


def with_samples(value: float) -> Wave:
    wave = voice().copy()
    wave[40_000] = value
    return wave


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not a WAV"),
    "text": (b"this is not audio, but a sentence", "not a WAV"),
    "only the RIFF header": (riff(), "no audio data"),
    "half a header": (wav()[:30], "reaches beyond its end"),
    "only a format": (riff(FORMAT), "no audio data"),
    "only data": (riff(DATA), "no format chunk"),
    "data before the format": (riff(DATA, FORMAT), "no format chunk"),
    "two formats": (riff(FORMAT, FORMAT, DATA), "two format chunks"),
    "no samples": (riff(FORMAT, chunk(b"data", b"")), "0.000 seconds"),
    "size 0 before samples": (riff(FORMAT, chunk(b"data", CONTENT, size=0)), "0.000 seconds"),
    "size larger than the file": (riff(FORMAT, chunk(b"data", CONTENT, size=384_000)), "cut short"),
    "cut in the middle": (wav()[:100_000], "cut short"),
    "a huge chunk before": (
        riff(FORMAT, chunk(b"LIST", b"INFO", size=0xFFFFFFF0), DATA),
        "reaches beyond its end",
    ),
    "nested LIST with the audio": (
        riff(FORMAT, chunk(b"LIST", b"wavl" + chunk(b"LIST", b"wavl" + DATA))),
        "no audio data",
    ),
    "a hundred thousand chunks": (riff(*[chunk(b"JUNK", b"")] * 100_000), "more than 1000 chunks"),
    "a short format": (riff(chunk(b"fmt ", layout()[:14]), DATA), "too short"),
    "RIFX": (b"RIFX" + wav()[4:], "RIFX"),
    "RF64": (other_format("RF64"), "RF64"),
    "renamed MP3": (other_format("MP3"), "MP3"),
    "renamed FLAC": (other_format("FLAC"), "FLAC"),
    "renamed Ogg": (other_format("OGG", "OPUS"), "Ogg"),
    "renamed AIFF": (other_format("AIFF"), "AIFF"),
    "AVI": (b"RIFF\x00\x01\x00\x00AVI " + bytes(300), "not a WAV"),
    "MP3 in a WAV": (riff(chunk(b"fmt ", layout(MP3, bits=0)), DATA), "MP3"),
    "ADPCM": (riff(chunk(b"fmt ", layout(ADPCM, bits=4)), DATA), "ADPCM"),
    "IMA ADPCM": (other_format("WAV", "IMA_ADPCM"), "ADPCM"),
    "GSM": (other_format("WAV", "GSM610"), "GSM"),
    "A-law": (riff(chunk(b"fmt ", layout(A_LAW, bits=8)), DATA), "A-law"),
    "mu-law": (riff(chunk(b"fmt ", layout(MU_LAW, bits=8)), DATA), "mu-law"),
    "an unknown format": (riff(chunk(b"fmt ", layout(0x1234)), DATA), "0x1234"),
    "an extensible format cut off": (
        riff(chunk(b"fmt ", layout(EXTENSIBLE)), DATA),
        "unknown extensible",
    ),
    "an extensible ADPCM": (
        riff(chunk(b"fmt ", layout(EXTENSIBLE, bits=4, subtag=ADPCM)), DATA),
        "ADPCM",
    ),
    "an extensible extensible": (
        riff(chunk(b"fmt ", layout(EXTENSIBLE, subtag=EXTENSIBLE)), DATA),
        "0xfffe",
    ),
    "rate 0": (riff(chunk(b"fmt ", layout(rate=0)), DATA), "rate is 0 Hz"),
    "rate 1": (riff(chunk(b"fmt ", layout(rate=1)), chunk(b"data", bytes(10))), "rate is 1 Hz"),
    "rate 4 294 967 295": (riff(chunk(b"fmt ", layout(rate=2**32 - 1)), DATA), "4294967295 Hz"),
    "no channels": (riff(chunk(b"fmt ", layout(channels=0)), DATA), "0 channels"),
    "three channels": (riff(chunk(b"fmt ", layout(channels=3)), DATA), "3 channels"),
    "65 535 channels": (riff(chunk(b"fmt ", layout(channels=65_535)), DATA), "65535 channels"),
    "0 bits": (riff(chunk(b"fmt ", layout(bits=0)), DATA), "0 bits"),
    "12 bits": (riff(chunk(b"fmt ", layout(bits=12)), DATA), "12 bits"),
    "16-bit float": (riff(chunk(b"fmt ", layout(FLOAT, bits=16)), DATA), "16 bits"),
    "a frame size of 0": (riff(chunk(b"fmt ", layout(frame_bytes=0)), DATA), "frame size"),
    "a frame size that lies": (riff(chunk(b"fmt ", layout(frame_bytes=6)), DATA), "frame size"),
    "2.999 seconds": (wav(voice(2.999)), "2.999 seconds"),
    "12.001 seconds": (wav(voice(12.001)), "12.001 seconds"),
    "one frame too few": (
        wav(voice(3, 24_000)[:-1], 24_000),
        r"71999 frames long, 3\.000 seconds at 24000 Hz \(at least 72000 frames.*3 to 12 seconds",
    ),
    "one frame too many": (
        wav(voice(13, 24_000)[: 12 * 24_000 + 1], 24_000),
        r"288001 frames long, 12\.000 seconds at 24000 Hz \(at most 288000 frames",
    ),
    "2 seconds": (wav(voice(2)), r"is 2\.000 seconds long"),
    "NaN": (wav(with_samples(np.nan), bits=32, floating=True), "not finite"),
    "infinity": (wav(with_samples(-np.inf), bits=64, floating=True), "not finite"),
    "beyond 32-bit floats": (wav(with_samples(1e300), bits=64, floating=True), "not finite"),
    "silence": (wav(voice() * 0), "silent"),
    "8-bit silence": (wav(voice() * 0, bits=8), "silent"),
    "a constant voltage": (wav(voice() * 0 + 0.7), "silent"),
    "the noise of an open input": (wav(voice() * 0.0005), "silent"),
    "clipped through": (wav(np.clip(voice() * 400, -1, 1)), "clipped through"),
    "clipped through, then turned down": (
        wav(np.clip(voice() * 400, -1, 1) * 0.3),
        "clipped through",
    ),
    "a click in silence": (wav(np.eye(1, 80_000, 40_000)[0]), "less than 0.5 seconds"),
}


@pytest.mark.parametrize(("file", "reason"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_file_is_refused_with_its_reason(file: bytes, reason: str) -> None:
    with pytest.raises(UnusableClip, match=reason) as refusal:
        read_clip(file)
    assert refusal.value.reason.endswith(".")
    assert len(refusal.value.reason) < 160


def test_libsndfile_opens_no_clients_file(monkeypatch: pytest.MonkeyPatch) -> None:
    flac = other_format("FLAC")

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("libsndfile was given the file")

    monkeypatch.setattr(soundfile.SoundFile, "__init__", opened)

    assert read_clip(wav()).seconds > 3
    with pytest.raises(UnusableClip):
        read_clip(flac)


@pytest.mark.parametrize(
    "text",
    [
        "", "=", "====", "A", "AA", "AAA", "AAAA====", "AAA=AAAA", "AA==\n", "AAAA AAAA", "AA-_",
        "ÄÄÄÄ", "\ud800AAA", "data:audio/wav;base64,",
        "data:audio/wav;base64,data:audio/wav;base64,AAAA", "data:audio/mpeg;base64,AAAA",
        "A" * 16_000_004,
    ],
)  # fmt: skip
def test_anything_but_strict_base64_is_refused(text: str) -> None:
    with pytest.raises(UnusableClip, match=r"base64"):
        decode_base64(text)


@pytest.mark.parametrize(
    "prefix",
    ["data:audio/x-wav;base64,", "data:audio/wave;base64,", "data:,", "DATA:AUDIO/WAV;BASE64,"],
)
def test_another_prefix_is_refused_with_the_supported_one(prefix: str) -> None:
    with pytest.raises(UnusableClip) as refusal:
        decode_base64(prefix + "AAAA")

    assert ("data:audio/wav;base64," in refusal.value.reason) == prefix.startswith("data:")


def refused_or_within_limits(file: bytes) -> None:
    try:
        clip = read_clip(file)
    except UnusableClip:
        return
    assert 3.0 <= clip.seconds <= 12.0
    assert np.isfinite(clip.samples).all()
    assert np.abs(clip.samples).max() <= 1.0


@given(st.binary(max_size=300), st.text(max_size=300))
def test_any_bytes_and_any_text_are_refused_without_another_error(
    content: bytes, text: str
) -> None:
    with pytest.raises(UnusableClip):
        read_clip(content)
    with pytest.raises(UnusableClip):
        clip_from_base64(text)


SHORT = {
    bits: wav(voice(3, 8_000), 8_000, bits, floating=floating)
    for bits, floating in ((8, False), (16, False), (24, False), (32, True), (64, True))
}


@settings(deadline=None)
@given(
    st.sampled_from(sorted(SHORT)),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=6),
    st.none() | st.integers(0, 30_000),
)
def test_a_damaged_file_is_refused_or_read_within_the_limits(
    bits: int, changes: list[tuple[int, int]], length: int | None
) -> None:
    file = bytearray(SHORT[bits][:length])
    for position, value in changes:
        if position < len(file):
            file[position] = value
    refused_or_within_limits(bytes(file))


@settings(deadline=None)
@given(
    st.tuples(
        st.sampled_from([0, 1, 2, 3, 6, 0x55, 0xFFFE]),
        st.sampled_from([0, 1, 2, 3, 65_535]),
        st.sampled_from([0, 1, 7_999, 8_000, 48_000, 2**32 - 1]),
        st.sampled_from([0, 1, 2, 3, 4, 8, 16, 65_535]),
        st.sampled_from([0, 1, 8, 16, 24, 32, 64, 65_535]),
    ),
    st.sampled_from([0, 1, 24_000, 2**31 - 1, 2**32 - 1]),
    st.binary(max_size=64).map(
        lambda pattern: (pattern or b"\0") * (200_000 // max(len(pattern), 1))
    ),
)
def test_any_format_with_any_samples_is_refused_or_read_within_the_limits(
    form: tuple[int, int, int, int, int], size: int, content: bytes
) -> None:
    tag, channels, rate, align, bits = form
    fields = struct.pack("<HHIIHH", tag, channels, rate, 0, align, bits)
    refused_or_within_limits(riff(chunk(b"fmt ", fields), chunk(b"data", content, size)))


def test_the_longest_clip_is_read_in_bounded_memory_and_time_and_false_sizes_allocate_none() -> (
    None
):
    file = wav(np.tile(voice(4, 96_000), 3)[:, None].repeat(2, axis=1), 96_000, 32, channels=2)
    with within(2.0), peak_below(8 * len(file)):
        assert read_clip(file).seconds == 12.0
    file = riff(FORMAT, chunk(b"LIST", b"", size=0xFFFFFFFF), DATA)
    with peak_below(100_000), pytest.raises(UnusableClip):
        read_clip(file)


@contextmanager
def peak_below(size: int) -> Iterator[None]:
    """Assert that the block allocates less than ``size`` bytes at a time."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size
