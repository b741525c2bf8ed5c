"""Clones of synthetic speakers on both embedded engines: pitch, spectrum, time and memory.

``python -m benchmarks.speech_clones`` needs the neural engine. ``--all`` mixes all of its voices.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from django.conf import settings

from speech.audio.pcm import SAMPLE_RATE, samples
from speech.audio.speaker import Speaker, analyse, ltas_distance
from speech.engines import Engine, Utterance
from speech.engines.espeak.engine import Espeak
from speech.engines.espeak.profile import calibrate
from speech.engines.kokoro import mixing
from speech.engines.kokoro.engine import BackgroundKokoro
from speech.engines.kokoro.files import VOICES

Made = TypeVar("Made")

ENGLISH: Final = [name for name in VOICES if not name.startswith("h")]
MARKED: Final = frozenset(
    ("af_heart", "af_nova", "af_sarah", "bf_emma", "am_michael", "am_onyx", "am_eric", "bm_george")
)
"""Voices that an operator may mark: four women's, four men's."""

SPEAKERS: Final = (
    *("en-us+f2", "en-us+f4", "en-us+Annie", "en-us+m7", "en-us+klatt4"),
    *("af_bella", "bf_isabella", "am_adam", "am_puck", "bm_lewis"),
)
CLIP: Final = (
    "The quick brown fox jumps over the lazy dog near the river bank. I would like a cup of tea, "
    "please. How are you feeling today, my friend?"
)
OTHER: Final = (
    "Every good day begins with coffee and the news. Where did the children go after school? "
    "We sold nine boats last summer."
)


class Engines:
    """Both engines, and the processor time of the neural one."""

    def __init__(self) -> None:
        self.espeak = Espeak(workers=1)
        self.kokoro = BackgroundKokoro(self.espeak, settings.SVC_NEURAL_DIR)

    async def heard(self, text: str, engine_voice: str, **as_clone: Any) -> Speaker:
        """How ``text`` sounds."""
        pcm = await self.spoken(text, engine_voice, **as_clone)
        return analyse(samples(pcm).astype(np.float32) / np.float32(32768), SAMPLE_RATE)

    async def spoken(self, text: str, engine_voice: str, **as_clone: Any) -> bytes:
        engine: Engine = self.kokoro if engine_voice in VOICES else self.espeak
        utterance = Utterance(text, "en", engine_voice, **as_clone)
        return b"".join([piece async for piece in engine.speak(utterance)])

    def process(self) -> tuple[float, int]:
        """Processor seconds and the most MB of the neural process."""
        pid = next(worker.pid for worker in self.kokoro._pool._workers)
        figures = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        ticks = int(figures[11]) + int(figures[12])
        peak = Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]
        return ticks / os.sysconf("SC_CLK_TCK"), int(peak) // 1024


async def in_thread(
    measure: Callable[[Callable[..., bytes]], Made],
    speak: Callable[..., Coroutine[Any, Any, bytes]],
) -> Made:
    """``measure``, which speaks by a blocking function."""
    loop = asyncio.get_running_loop()

    def blocking(*given: Any) -> bytes:
        spoken: Coroutine[Any, Any, bytes] = speak(*given)
        return asyncio.run_coroutine_threadsafe(spoken, loop).result()

    return await asyncio.to_thread(measure, blocking)


def _differs(speaker: Speaker, clone: Speaker) -> str:
    off = 100 * (clone.f0 / speaker.f0 - 1) if clone.f0 and speaker.f0 else float("nan")
    return f"{off:+.1f} %, {ltas_distance(speaker, clone):.1f} dB"


async def clones(engines: Engines, voices: frozenset[str]) -> None:
    print("| speaker | pitch, Hz | espeak-ng | Kokoro | mix | made in, s | processor, s |")
    print("|---|---:|---|---|---|---:|---:|")
    await engines.spoken("Ready.", "af_heart")
    known: dict[str, Speaker] = {}
    for name in SPEAKERS:
        speaker = await engines.heard(CLIP, name)
        began, (before, _) = time.monotonic(), engines.process()
        mix = await in_thread(
            lambda speak, of=speaker: mixing.calibrate(of, voices, speak, known),  # type: ignore[misc]
            lambda text, mix: engines.spoken(text, mix.styles[0][0], mix=mix),
        )
        took, (after, _) = time.monotonic() - began, engines.process()
        profile = await in_thread(
            lambda speak, of=speaker: calibrate(of, speak),  # type: ignore[misc]
            lambda text, profile: engines.spoken(text, "en-us", profile=profile),
        )
        by_espeak = await engines.heard(OTHER, "en-us", profile=profile)
        by_kokoro = await engines.heard(OTHER, mix.styles[0][0], mix=mix)
        shares = ", ".join(f"{voice} {share:.2f}" for voice, share in mix.styles)
        print(
            f"| {name} | {speaker.f0 or 0:.0f} | {_differs(speaker, by_espeak)} "
            f"| {_differs(speaker, by_kokoro)} | {shares}; pitch {mix.pitch:.2f} "
            f"| {took:.0f} | {after - before:.1f} |",
            flush=True,
        )
    print(f"\nMost memory of the neural process: {engines.process()[1]} MB")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="mix all voices that are no speaker's")
    chosen = parser.parse_args()
    engines = Engines()
    try:
        others = frozenset(ENGLISH) - set(SPEAKERS)
        await clones(engines, others if chosen.all else MARKED)
    finally:
        await engines.kokoro.close()
        await engines.espeak.close()


if __name__ == "__main__":
    import django

    django.setup()
    asyncio.run(main())
