"""Encodes complete files in the five response formats of the speech contract.

libsndfile encodes (through soundfile). Times for one second of speech on one core: wav 0.1 ms,
flac 0.4 ms, mp3 9 ms, opus 15 ms; so encoding is done in threads, where libsndfile releases the
GIL (``speech.audio.encoders``). Vorbis is not supported: libsndfile crashes on long clips of it.
"""

from __future__ import annotations

import os
import tempfile
from enum import StrEnum
from typing import IO

import soundfile

from speech.audio.pcm import CHANNELS, SAMPLE_RATE, SHORTEST_SECONDS, samples, silence

_BLOCK_SAMPLES = SAMPLE_RATE * 10

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
    AudioFormat.WAV: ("WAV", "PCM_16"),
    AudioFormat.MP3: ("MP3", "MPEG_LAYER_III"),
    AudioFormat.OPUS: ("OGG", "OPUS"),
    AudioFormat.FLAC: ("FLAC", "PCM_16"),
}


def encode(pcm: bytes, audio_format: AudioFormat) -> bytes:
    """Encode ``pcm`` (``speech.audio.pcm``) as one complete file with exact sizes.

    The format ``pcm`` is returned unchanged. An empty clip becomes a short silence. Raises
    ``ValueError`` for half a sample.
    """
    # Some encoders cannot write an empty file.
    pcm = pcm or silence(SHORTEST_SECONDS)
    signal = samples(pcm)
    if audio_format is AudioFormat.PCM:
        return pcm
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
            for at in range(0, len(signal), _BLOCK_SAMPLES):
                clip.write(signal[at : at + _BLOCK_SAMPLES])
        written.seek(0)
        return written.read()


def _memory_file() -> IO[bytes]:
    """Open a file with a descriptor, in memory where the system can.

    libsndfile writes to a descriptor without the interpreter, which a Python object would need for
    each of many small writes.
    """
    if hasattr(os, "memfd_create"):  # only Linux has it
        return open(os.memfd_create("svc-speech"), "w+b")
    return tempfile.TemporaryFile()
