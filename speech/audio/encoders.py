"""Threads that encode clips, shared between organizations.

They have a lower priority, because a file of half an hour takes ten seconds of a core that event
loops need for other answers. Short clips, for which somebody waits, have threads of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from core.sharing.fair_queue import FairPool
from core.sharing.processors import Niceness
from speech.audio.encoding import AudioFormat, encode
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH

_LONGEST_SHORT_CLIP: Final = 10 * SAMPLE_RATE * SAMPLE_WIDTH
"""Bytes; such a clip takes at most 0.15 s of a core."""


class Encoders:
    """Threads that encode clips: ``threads`` for short ones, as many for long ones.

    Belongs to one event loop.
    """

    def __init__(self, threads: int) -> None:
        self._short = FairPool("speech-encoding-short", threads, Niceness.SHORT_WORK)
        self._long = FairPool("speech-encoding-long", threads, Niceness.BULK_WORK)

    async def encode(
        self, pieces: Sequence[bytes], audio_format: AudioFormat, organization_id: str
    ) -> list[bytes]:
        """``encode`` without blocking the event loop.

        Raises ``ValueError`` as ``encode`` does, and ``ServerOverloaded`` as ``FairPool`` does.
        """
        if audio_format in (AudioFormat.PCM, AudioFormat.WAV):
            return encode(pieces, audio_format)
        is_short = sum(map(len, pieces)) <= _LONGEST_SHORT_CLIP
        threads = self._short if is_short else self._long
        return await threads.run(organization_id, partial(encode, pieces, audio_format))
