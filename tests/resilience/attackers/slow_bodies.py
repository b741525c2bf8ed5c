"""The holder of an inference and a speech key begins bodies and then sends a byte a second.

Most are small; some are reference clips of 16 MB of which little is missing. He hopes that bodies that
are being read take all the room and memory that one process has for requests.
"""

from __future__ import annotations

import asyncio

from tests.resilience.attackers.tools import Tally, hold
from tests.resilience.target import Target
from tests.resilience.wire import head

_HELD = 150
_CLIPS = 24
_CLIP = 15_000_000


async def attack(target: Target, tally: Tally) -> None:
    length = {"Content-Length": "100000"}
    inference, speech = (
        head("POST", path, key=key, headers=length) + b"{"
        for path, key in (
            ("/v1/chat/completions", target.tenant.inference),
            ("/v1/audio/speech", target.tenant.speech),
        )
    )
    clip = head(
        "POST",
        "/v1/voices",
        key=target.tenant.speech,
        headers={"Content-Length": str(_CLIP + 100_000)},
    )
    await asyncio.gather(
        hold(target.speech_port, clip + b" " * _CLIP, _CLIPS, tally, drip=b" "),
        hold(target.port, inference, _HELD, tally, drip=b" "),
        hold(target.speech_port, speech, _HELD, tally, drip=b" "),
    )
