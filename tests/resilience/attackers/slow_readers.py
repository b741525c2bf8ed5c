"""A tenant asks for long answers and reads nothing of them: CSV, streamed chats, streamed
sound, complete files of sound.

He hopes to hold memory, places, database transactions and model servers for as long as he likes.
"""

from __future__ import annotations

import asyncio

from tests.resilience.attackers.tools import Tally, hold
from tests.resilience.target import Target
from tests.resilience.wire import chat, request, speech

_BUFFER = 4096
_DOWNLOADS = 40
_STREAMS = 30
_VOICES = 4
_FILES = 12


async def attack(target: Target, tally: Tally) -> None:
    keys = target.tenant
    body = chat(target, "tell me [[sim tokens=1500]]", stream=True)
    sound, file = (speech(target, "This goes on. " * 250, kind) for kind in ("pcm", "wav"))
    asked = (
        (target.port, request("GET", "/v1/usage/export?format=csv", key=keys.read), _DOWNLOADS),
        (
            target.port,
            request("POST", "/v1/chat/completions", key=keys.inference, body=body),
            _STREAMS,
        ),
        (
            target.speech_port,
            request("POST", "/v1/audio/speech", key=keys.speech, body=sound),
            _VOICES,
        ),
        (
            target.speech_port,
            request("POST", "/v1/audio/speech", key=keys.speech, body=file),
            _FILES,
        ),
    )
    await asyncio.gather(
        *(
            hold(port, content, count, tally, reads=False, receive_buffer=_BUFFER)
            for port, content, count in asked
        )
    )
