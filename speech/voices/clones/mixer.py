"""Makes the mixes with which the neural engine speaks clones, in the background.

A clone speaks with espeak-ng from its creation on. Where the operator lets it (``mixed_into_clones`` of
a voice) and the neural engine speaks live here, its mix is made from the stored clip: one clone at a
time on a host, in a process of the lowest priority that ends after the last one.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

from core.database.threads import WRITE_SECONDS, threads
from core.errors import InternalError
from speech.audio.speaker import Speaker, analyse
from speech.audio.wav import read_clip
from speech.engines import Engine, EngineError, StyleMix, Utterance
from speech.engines.kokoro.mixing import calibrate
from speech.models import Language
from speech.voices.clones import rows
from speech.voices.clones.clips import clips

log = logging.getLogger(__name__)

MOST_TRIES: Final = 3
"""Tries of a clone in one process; later it keeps the voice that it has until the next start."""

Styles = Callable[[], frozenset[str]]
"""The neural engine's voices that may be mixed now; none while no mix is to be made here."""


class Mixer:
    """The mixer of a process; it does nothing before ``start``."""

    def __init__(self) -> None:
        self._styles: Styles = frozenset
        self._open_engine: Callable[[], Engine]
        self._lock: Path
        self._task: asyncio.Task[None] | None = None
        self._failed: Counter[str] = Counter()
        self._voices: dict[str, Speaker] = {}
        """The engine's voices as they were measured in this process."""

    def start(self, styles: Styles, open_engine: Callable[[], Engine], lock: Path) -> None:
        """``open_engine`` makes the engine that speaks with a mix; ``lock`` is a file of the host."""
        self._styles, self._open_engine, self._lock = styles, open_engine, lock

    async def stop(self) -> None:
        """Cancel what is being made; it is made after the next start."""
        self._styles = frozenset
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def nudge(self) -> None:
        """Make the mixes that are missing, unless that is going on. Call it on the event loop."""
        if self._styles() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self.make_missing())

    async def make_missing(self) -> None:
        """Make each mix that is missing, unless another process of the host is at it."""
        with suppress(InternalError, FileNotFoundError), _locked(self._lock) as is_ours:
            if is_ours:
                await self._make_missing()

    async def _make_missing(self) -> None:
        engine: Engine | None = None
        tried: set[str] = set()
        try:
            while styles := self._styles():
                given_up = {each for each, count in self._failed.items() if count >= MOST_TRIES}
                clone = await threads.run(partial(rows.without_mix, tried | given_up))
                if clone is None:
                    return
                tried.add(clone)
                engine = engine or self._open_engine()
                try:
                    await self._make(clone, styles, engine)
                except Exception as error:  # the clone keeps the voice that it has
                    self._failed[clone] += 1
                    reason = error if isinstance(error, EngineError) else type(error).__name__
                    log.warning("clone %s has no natural voice for now: %s", clone, reason)
        finally:
            if engine is not None:
                await engine.close()

    async def _make(self, clone: str, styles: frozenset[str], engine: Engine) -> None:
        began = time.monotonic()
        wav = await clips.clip(clone)
        loop = asyncio.get_running_loop()
        speaking: list[Future[bytes]] = []

        def speak(text: str, mix: StyleMix) -> bytes:
            speaking.append(asyncio.run_coroutine_threadsafe(_spoken(engine, text, mix), loop))
            return speaking[-1].result()

        def measure() -> StyleMix:
            clip = read_clip(wav)
            return calibrate(analyse(clip.samples, clip.rate), styles, speak, self._voices)

        try:
            mix = await asyncio.to_thread(measure)
        finally:
            for each in speaking:
                each.cancel()  # which ends the thread when this is cancelled
        if await threads.run(partial(rows.keep_mix, clone, mix), WRITE_SECONDS):
            log.info("clone %s got its natural voice in %.0f s", clone, time.monotonic() - began)


async def _spoken(engine: Engine, text: str, mix: StyleMix) -> bytes:
    utterance = Utterance(text, Language.ENGLISH.value, mix.styles[0][0], mix=mix)
    return b"".join([piece async for piece in engine.speak(utterance)])


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether this process has the lock on a file; released at the end, or with the process."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


mixer = Mixer()
"""The mixer of this process."""
