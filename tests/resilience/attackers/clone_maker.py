"""The holder of a speech key makes voice clones and deletes them again, four at once.

Each takes a second of the engine and of one processor: he hopes that nobody else is heard.
"""

from __future__ import annotations

import asyncio
import json
import secrets

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally
from tests.resilience.target import Target
from tests.resilience.victim import clip
from tests.resilience.wire import request

_AT_ONCE = 4


async def attack(target: Target, tally: Tally) -> None:
    audio = clip()

    async def loop() -> None:
        while True:
            wanted = {"name": secrets.token_hex(8), "audio_b64": audio, "consent": True}
            content = request(
                "POST", "/v1/voices", key=target.tenant.speech, body=json.dumps(wanted).encode()
            )
            made = await tally.ask(target.speech_port, content)
            if made is not None and made.status == 201:
                path = f"/v1/voices/{json.loads(made.body)['id']}"
                await tally.ask(
                    target.speech_port, request("DELETE", path, key=target.tenant.speech)
                )
            else:
                await asyncio.sleep(REOPEN_SECONDS)

    await asyncio.gather(*(loop() for _ in range(_AT_ONCE)))
