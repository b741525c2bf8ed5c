"""Threads that encode clips, shared between organizations.

They have a lower priority, because a file of half an hour takes ten seconds of a core that event
loops need for other answers. Short clips, for which somebody waits, have threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from core.sharing.fair_queue import FairQueue
from core.sharing.processors import Niceness, lower_priority
from speech.audio.encoding import AudioFormat, encode
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH

_LONGEST_SHORT_CLIP: Final = 10 * SAMPLE_RATE * SAMPLE_WIDTH
"""Bytes; such a clip takes at most 0.15 s of a core."""
_MOST_WAITING: Final = 10_000
_LONGEST_WAIT_SECONDS: Final = 600.0
"""Admission bounds how many requests there are (``SVC_MAX_INFLIGHT``); these only end a queue that
does not move."""


class Encoders:
    """Threads that encode clips: ``threads`` for short ones, as many for long ones.

    Belongs to one event loop.
    """

    def __init__(self, threads: int) -> None:
        self._short = _Threads("short", threads, Niceness.SHORT_WORK)
        self._long = _Threads("long", threads, Niceness.BULK_WORK)

    async def encode(
        self, pieces: Sequence[bytes], audio_format: AudioFormat, organization_id: str
    ) -> list[bytes]:
        """``encode`` without blocking the event loop.

        Raises ``ValueError`` as ``encode`` does, and ``ServerOverloaded`` when the queue does not
        move for ten minutes. A cancelled caller's thread is free when its clip is encoded.
        """
        if audio_format in (AudioFormat.PCM, AudioFormat.WAV):
            return encode(pieces, audio_format)
        is_short = sum(map(len, pieces)) <= _LONGEST_SHORT_CLIP
        threads = self._short if is_short else self._long
        return await threads.encode(pieces, audio_format, organization_id)


class _Threads:
    """Threads of one priority; organizations take turns.

    One organization never has all threads while another used them in the last minutes
    (``FairQueue``), so that a clip does not wait for many of another organization.
    """

    def __init__(self, name: str, threads: int, niceness: Niceness) -> None:
        self._slots = FairQueue(threads, _MOST_WAITING, _LONGEST_WAIT_SECONDS, 1 / threads)
        self._threads = ThreadPoolExecutor(
            threads, f"speech-encoding-{name}", lower_priority, (niceness,)
        )

    async def encode(
        self, pieces: Sequence[bytes], audio_format: AudioFormat, organization_id: str
    ) -> list[bytes]:
        """Encode in one of the threads, or raise ``ServerOverloaded``."""
        await self._slots.acquire(organization_id)
        loop = asyncio.get_running_loop()

        def release(_ended: Future[list[bytes]]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._slots.release, organization_id)

        encoding = self._threads.submit(encode, pieces, audio_format)
        encoding.add_done_callback(release)
        return await asyncio.wrap_future(encoding)
