"""Threads that encode clips, shared between organizations.

They have a lower priority, because a file of half an hour takes ten seconds of a core that event
loops need for other answers. It is not much lower, since between two blocks of a file they hold the
interpreter for a moment, and event loops wait for a thread that holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from speech.audio.encoding import AudioFormat, encode
from svc_project.lib.sharing.fair_queue import FairQueue
from svc_project.lib.sharing.priority import Niceness, lower_priority

_MOST_WAITING: Final = 10_000
_LONGEST_WAIT_SECONDS: Final = 600.0
"""Admission bounds how many requests there are (``SVC_MAX_INFLIGHT``); these only end a queue that
does not move."""


class Encoders:
    """Threads that encode clips; organizations take turns.

    One organization never has all threads while another used them in the last minutes
    (``FairQueue``), so that a short clip does not wait for long ones. Belongs to one event loop.
    """

    def __init__(self, threads: int) -> None:
        self._slots = FairQueue(threads, _MOST_WAITING, _LONGEST_WAIT_SECONDS, 1 / threads)
        self._threads = ThreadPoolExecutor(
            threads, "speech-encoding", lower_priority, (Niceness.SHORT_WORK,)
        )

    async def encode(
        self, pieces: Sequence[bytes], audio_format: AudioFormat, organization_id: str
    ) -> list[bytes]:
        """``encode`` without blocking the event loop.

        Raises ``ValueError`` as ``encode`` does, and ``ServerOverloaded`` when the queue does not
        move for ten minutes. A cancelled caller's thread is free when its clip is encoded.
        """
        if audio_format in (AudioFormat.PCM, AudioFormat.WAV):
            return encode(pieces, audio_format)
        await self._slots.acquire(organization_id)
        loop = asyncio.get_running_loop()

        def release(_ended: Future[list[bytes]]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._slots.release, organization_id)

        encoding = self._threads.submit(encode, pieces, audio_format)
        encoding.add_done_callback(release)
        return await asyncio.wrap_future(encoding)
