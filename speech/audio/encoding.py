"""Encodes complete files in the five response formats of the speech contract.

libsndfile encodes (through soundfile), but for ``wav``, which is the samples behind a header. Times
for one second of speech on one core: flac 0.4 ms, mp3 9 ms, opus 15 ms; so encoding is done in
threads, where libsndfile releases the GIL (``speech.audio.encoders``). Vorbis is not supported:
libsndfile crashes on long clips of it.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import IO

import soundfile

from speech.audio.pcm import (
    CHANNELS,
    SAMPLE_RATE,
    SAMPLE_WIDTH,
    SHORTEST_SECONDS,
    samples,
    silence,
)

_BLOCK_BYTES = 10 * SAMPLE_RATE * SAMPLE_WIDTH
"""After each block the thread needs the interpreter, so blocks are not small."""

_WAV_HEADER = struct.Struct("<4sI4s4sIHHIIHH4sI")
_PCM_TAG = 1

_OPUS_LEVEL = 0.8
"""libsndfile's compression level, for Opus the bit rate: about 60 kbit/s. From 0.85 on, libopus
uses its speech coder, which takes two and a half times as long."""


class AudioFormat(StrEnum):
    """``response_format`` of the contract."""

    WAV = "wav"
    MP3 = "mp3"
    PCM = "pcm"
    OPUS = "opus"
    FLAC = "flac"

    @property
    def content_type(self) -> str:
        """The ``Content-Type`` of the format (speech contract)."""
        return _CONTENT_TYPES[self]


_CONTENT_TYPES = {
    AudioFormat.WAV: "audio/wav",
    AudioFormat.MP3: "audio/mpeg",
    AudioFormat.PCM: "audio/pcm",
    AudioFormat.OPUS: "audio/opus",
    AudioFormat.FLAC: "audio/flac",
}

_CONTAINERS = {
    AudioFormat.MP3: ("MP3", "MPEG_LAYER_III"),
    AudioFormat.OPUS: ("OGG", "OPUS"),
    AudioFormat.FLAC: ("FLAC", "PCM_16"),
}


def encode(pieces: Sequence[bytes], audio_format: AudioFormat) -> list[bytes]:
    """Encode ``pieces`` (``speech.audio.pcm``) as one complete file with exact sizes, in parts.

    The parts of ``wav`` and ``pcm`` are the pieces themselves: a file of half an hour is not copied.
    An empty clip becomes a short silence. Raises ``ValueError`` for half a sample.
    """
    if any(len(piece) % SAMPLE_WIDTH for piece in pieces):
        raise ValueError("A piece of sound ends with half a sample.")
    # Some encoders cannot write an empty file.
    pieces = pieces if any(pieces) else [silence(SHORTEST_SECONDS)]
    if audio_format is AudioFormat.PCM:
        return list(pieces)
    if audio_format is AudioFormat.WAV:
        return [_wav_header(sum(map(len, pieces))), *pieces]
    return [_encoded(pieces, audio_format)]


def _wav_header(size: int) -> bytes:
    """The beginning of a RIFF file with ``size`` bytes of samples."""
    per_second = SAMPLE_RATE * CHANNELS * SAMPLE_WIDTH
    return _WAV_HEADER.pack(
        *(b"RIFF", _WAV_HEADER.size - 8 + size, b"WAVE", b"fmt ", 16, _PCM_TAG, CHANNELS),
        *(SAMPLE_RATE, per_second, CHANNELS * SAMPLE_WIDTH, 8 * SAMPLE_WIDTH, b"data", size),
    )


def _encoded(pieces: Sequence[bytes], audio_format: AudioFormat) -> bytes:
    container, subtype = _CONTAINERS[audio_format]
    level = _OPUS_LEVEL if audio_format is AudioFormat.OPUS else None
    with _memory_file() as written:
        with soundfile.SoundFile(
            written.fileno(),
            "w",
            SAMPLE_RATE,
            CHANNELS,
            format=container,
            subtype=subtype,
            closefd=False,
            compression_level=level,
        ) as clip:
            for block in chunks(pieces, _BLOCK_BYTES):
                clip.write(samples(block))
        written.seek(0)
        return written.read()


def chunks(parts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Join and cut ``parts`` to chunks of ``size`` bytes; only the last one may be shorter."""
    held: list[bytes] = []
    length = 0
    for part in parts:
        held.append(part)
        length += len(part)
        if length >= size:
            joined = b"".join(held)
            end = length - length % size
            yield from (joined[at : at + size] for at in range(0, end, size))
            held, length = [joined[end:]], length - end
    if length:
        yield b"".join(held)


def _memory_file() -> IO[bytes]:
    """Open a file with a descriptor, in memory where the system can.

    libsndfile writes to a descriptor without the interpreter, which a Python object would need for
    each of many small writes.
    """
    if hasattr(os, "memfd_create"):  # only Linux has it
        return open(os.memfd_create("svc-speech"), "w+b")
    return tempfile.TemporaryFile()
