"""``python -m benchmarks.speech_engines``: compares the embedded and the neural engine.

Each is measured over the sockets of its own gateway. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
from datetime import UTC, datetime

from benchmarks.speech import Row, Speech, speaking_gateway, table
from benchmarks.speech_engines import interruptions, quality, timing
from benchmarks.speech_engines.timing import SHORT

ENGINES = {
    "espeak": {"woman": "en-us+f3", "man": "en-us", "hindi": "hi"},
    "kokoro": {"woman": "af_heart", "man": "am_michael", "hindi": "hf_alpha"},
}
_VOICE = """
[[voices]]
id = "{voice}"
language = "{language}"
engine = "{engine}"
engine_voice = "{engine_voice}"
"""
_TABLES = (
    (
        "A page of sentences, each voice (P.808 estimated by DNSMOS)",
        ["engine", "voice", "sentences", "sound, s", "P.808", "least", "real-time factor"],
    ),
    (
        "One request at a time (medians)",
        ["engine", "characters", "sound, s", "first pcm byte, ms", "best", "real-time factor"],
    ),
    (
        f"WebSocket sessions at once ({SHORT!r} each, wav)",
        ["engine", "sessions", "first audio, ms", "slowest", "refused", "memory, MB"],
    ),
    (
        "Interrupted sessions (`clear` while a long text is spoken)",
        [
            "engine",
            "rounds",
            "silence after, ms",
            "slowest",
            "next utterance, ms",
            "slowest",
            "where nothing was interrupted, ms",
        ],
    ),
)


def _catalog(engine: str) -> str:
    return "".join(
        _VOICE.format(
            voice=voice,
            language="hi" if voice == "hindi" else "en",
            engine=engine,
            engine_voice=engine_voice,
        )
        for voice, engine_voice in ENGINES[engine].items()
    )


async def _measured(speech: Speech, engine: str, rounds: int) -> list[list[Row]]:
    """The rows of each table."""
    await timing.start(speech)
    found: list[list[Row]] = [
        [await quality.page(speech, voice) for voice in ENGINES[engine]],
        await timing.one_at_a_time(speech, rounds),
        [await timing.sessions(speech, count) for count in (1, 10, 50)],
        [await interruptions.interrupted(speech, rounds)],
    ]
    return [[(engine, *row) for row in rows] for rows in found]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speech_engines")
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {datetime.now(UTC):%F}.")
    if quality.MODEL is None:
        print(quality.MISSING)
    every: list[list[Row]] = [[] for _ in _TABLES]
    for engine in ENGINES:
        print(f"Load average before {engine}: {os.getloadavg()[0]:.1f}.", flush=True)
        with speaking_gateway(_catalog(engine)) as speech:
            for rows, found in zip(
                every, asyncio.run(_measured(speech, engine, rounds)), strict=True
            ):
                rows.extend(found)
    print(f"Load average at the end: {os.getloadavg()[0]:.1f}.\n")
    for (title, heads), rows in zip(_TABLES, every, strict=True):
        print(table(title, heads, rows))


if __name__ == "__main__":
    main()
