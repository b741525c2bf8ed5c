"""The five answer formats of the speech contract, as complete files.

libsndfile encodes (through soundfile). Times for one second of speech on one core: wav 0.1 ms,
flac 0.4 ms, mp3 9 ms, opus 15 ms; so encoding is done in threads, where libsndfile lets the event
loop go on. Vorbis is not offered: libsndfile crashes on long clips of it.
"""

from __future__ import annotations

import asyncio
import io
import os
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import soundfile

from speech.audio import CHANNELS, SAMPLE_RATE, samples, silence

SHORTEST_SECONDS = 0.02
"""An empty clip becomes this much silence: some encoders make no file of nothing."""

_BLOCK_SAMPLES = SAMPLE_RATE * 10

_OPUS_LEVEL = 0.8
"""libsndfile's compression level, which is the bit rate for Opus: about 60 kbit/s. From 0.85 on libopus
takes its speech coder, which needs two and a half times as long."""


class AudioFormat(StrEnum):
    """``response_format`` of the contract."""

    WAV = "wav"
    MP3 = "mp3"
    PCM = "pcm"
    OPUS = "opus"
    FLAC = "flac"

    @property
    def content_type(self) -> str:
        """The ``Content-Type`` that the contract gives the format."""
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

_threads = ThreadPoolExecutor(
    max_workers=max(2, os.cpu_count() or 1), thread_name_prefix="speech-encoding"
)


def encode(pcm: bytes, audio_format: AudioFormat) -> bytes:
    """One complete file of ``pcm`` (``speech.audio``), its sizes exact; ``pcm`` as it is.

    An empty clip becomes a short silence. Raises ``ValueError`` for half a sample.
    """
    pcm = pcm or silence(SHORTEST_SECONDS)
    signal = samples(pcm)
    if audio_format is AudioFormat.PCM:
        return pcm
    container, subtype = _CONTAINERS[audio_format]
    level = _OPUS_LEVEL if audio_format is AudioFormat.OPUS else None
    written = io.BytesIO()
    with soundfile.SoundFile(
        written,
        "w",
        SAMPLE_RATE,
        CHANNELS,
        format=container,
        subtype=subtype,
        compression_level=level,
    ) as clip:
        for at in range(0, len(signal), _BLOCK_SAMPLES):
            clip.write(signal[at : at + _BLOCK_SAMPLES])
    return written.getvalue()


async def encode_in_thread(pcm: bytes, audio_format: AudioFormat) -> bytes:
    """``encode`` without holding up the event loop; at most one clip per core at a time."""
    if audio_format is AudioFormat.PCM:
        return encode(pcm, audio_format)
    return await asyncio.get_running_loop().run_in_executor(_threads, encode, pcm, audio_format)
