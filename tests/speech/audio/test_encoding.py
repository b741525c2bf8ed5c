"""Every format is one complete file that ordinary software plays."""

from __future__ import annotations

import asyncio
import io
import os
import struct
import sys
import threading

import numpy as np
import pytest
import soundfile

from core.sharing.processors import Niceness
from speech.audio.encoders import Encoders
from speech.audio.encoding import AudioFormat, encode
from speech.audio.pcm import SAMPLE_RATE, duration, pcm_bytes, samples

FILES = [AudioFormat.WAV, AudioFormat.MP3, AudioFormat.OPUS, AudioFormat.FLAC]
BEGINNINGS = {"wav": b"RIFF", "flac": b"fLaC", "opus": b"OggS"}


def sound(seconds: float) -> bytes:
    at = np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    return pcm_bytes(0.4 * np.sin(2 * np.pi * 440 * at) * np.sin(2 * np.pi * 3 * at))


def file(pcm: bytes, audio_format: AudioFormat) -> bytes:
    return b"".join(encode([pcm], audio_format))


def test_the_formats_and_their_content_types_are_the_contracts() -> None:
    types = {"wav": "wav", "mp3": "mpeg", "pcm": "pcm", "opus": "opus", "flac": "flac"}
    assert {f.value: f.content_type for f in AudioFormat} == {
        name: f"audio/{kind}" for name, kind in types.items()
    }


@pytest.mark.parametrize("audio_format", FILES)
@pytest.mark.parametrize("seconds", [0.01, 0.5, 3.217, 25.0])
def test_a_file_decodes_to_what_was_spoken(audio_format: AudioFormat, seconds: float) -> None:
    pcm = sound(seconds)
    decoded, rate = soundfile.read(io.BytesIO(file(pcm, audio_format)), always_2d=True)
    original = samples(pcm) / 32768

    assert rate == SAMPLE_RATE
    assert decoded.shape == (len(original), 1)
    assert np.corrcoef(decoded[:, 0], original)[0, 1] > 0.95


@pytest.mark.parametrize("audio_format", FILES)
def test_an_empty_clip_is_a_file_that_decodes(audio_format: AudioFormat) -> None:
    decoded, _ = soundfile.read(io.BytesIO(file(b"", audio_format)))

    assert 0 < len(decoded) < SAMPLE_RATE
    assert np.abs(decoded).max() < 0.001


def test_pcm_is_unchanged_and_never_empty() -> None:
    pcm = sound(0.3)

    assert file(pcm, AudioFormat.PCM) == pcm
    assert 0 < duration(file(b"", AudioFormat.PCM)) < 1


@pytest.mark.parametrize("audio_format", FILES)
def test_pieces_make_the_file_of_the_whole(audio_format: AudioFormat) -> None:
    pcm = sound(23.0)
    pieces = [pcm[at : at + 48_000] for at in range(0, len(pcm), 48_000)]
    decoded, _ = soundfile.read(io.BytesIO(b"".join(encode(pieces, audio_format))))

    assert len(decoded) == len(samples(pcm))
    assert np.corrcoef(decoded, samples(pcm) / 32768)[0, 1] > 0.95


def test_lossless_formats_keep_every_sample_and_a_wav_file_does_not_copy_it() -> None:
    pcm = sound(0.7)
    for audio_format in (AudioFormat.WAV, AudioFormat.FLAC):
        decoded, _ = soundfile.read(io.BytesIO(file(pcm, audio_format)), dtype="int16")
        assert decoded.astype("<i2").tobytes() == pcm
    _header, *parts = encode([pcm, pcm], AudioFormat.WAV)
    assert all(part is pcm for part in parts)


def test_each_file_begins_as_its_format_does_and_the_sizes_of_wav_are_exact() -> None:
    pcm = sound(0.2)
    files = {audio_format.value: file(pcm, audio_format) for audio_format in FILES}
    for name, beginning in BEGINNINGS.items():
        assert files[name].startswith(beginning)
    assert b"OpusHead" in files["opus"][:64]
    assert files["mp3"].startswith(b"ID3") or files["mp3"][0] == 0xFF
    wav = files["wav"]
    assert struct.unpack_from("<I", wav, 4)[0] == len(wav) - 8
    assert struct.unpack_from("<I", wav, wav.index(b"data") + 4)[0] == len(pcm)


@pytest.mark.parametrize("audio_format", list(AudioFormat))
def test_half_a_sample_is_refused(audio_format: AudioFormat) -> None:
    with pytest.raises(ValueError, match="half a sample"):
        encode([b"\0\0\0"], audio_format)


async def test_encoding_does_not_block_the_event_loop() -> None:
    pcm = sound(10.0)
    encoders = Encoders(2)
    clips = asyncio.gather(*(encoders.encode([pcm], f, "a") for f in (*FILES, AudioFormat.OPUS)))
    turns = 0
    while not clips.done():
        await asyncio.sleep(0.001)
        turns += 1
    encoded = await clips

    assert turns > 4 * len(encoded), "a loop that is blocked has a turn for each clip"
    assert len(encoded) == 5
    assert b"".join(encoded[0]) == file(pcm, AudioFormat.WAV)


@pytest.mark.long
@pytest.mark.parametrize(("threads", "organization"), [(2, "b"), (1, "a")], ids=["another", "own"])
async def test_a_short_clip_does_not_wait_for_the_long_ones_of_any_organization(
    threads: int, organization: str
) -> None:
    encoders = Encoders(threads)
    await encoders.encode([sound(0.1)], AudioFormat.MP3, organization)
    asked = (encoders.encode([sound(11.0)], AudioFormat.OPUS, "a") for _ in range(4))
    long = [asyncio.create_task(each) for each in asked]
    await asyncio.sleep(0)

    await encoders.encode([sound(0.1)], AudioFormat.MP3, organization)

    assert not any(task.done() for task in long)
    assert len({len(each) for (each,) in await asyncio.gather(*long)}) == 1


async def test_a_cancelled_clip_keeps_its_thread_until_it_is_encoded() -> None:
    encoders = Encoders(1)
    left = asyncio.create_task(encoders.encode([sound(5.0)], AudioFormat.OPUS, "a"))
    await asyncio.sleep(0)
    left.cancel()

    assert await encoders.encode([sound(0.1)], AudioFormat.MP3, "b")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
@pytest.mark.parametrize(
    ("seconds", "behind"), [(10.0, Niceness.SHORT_WORK), (10.1, Niceness.BULK_WORK)]
)
async def test_encoding_gives_way_to_the_event_loop(seconds: float, behind: Niceness) -> None:
    before = set(threading.enumerate())
    encoders = Encoders(1)
    await encoders.encode([sound(seconds)], AudioFormat.FLAC, "a")

    started = set(threading.enumerate()) - before
    (thread,) = (t for t in started if t.name.startswith("speech-encoding"))
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert os.getpriority(os.PRIO_PROCESS, thread.native_id or 0) - own == behind
