"""The holder of a read key walks his export page by page from the start, ten walks at once.

He also asks for wide periods by hour, and hopes that the database reads for him alone.
"""

from __future__ import annotations

import asyncio
import json

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import request

_WALKS = 10
_WIDE = "/v1/usage?group_by=model,api_key,time&bucket=hour&start=2026-01-01&end=2026-12-31"


async def attack(target: Target, tally: Tally) -> None:
    wide = request("GET", _WIDE, key=target.tenant.read)
    await asyncio.gather(
        *(_walk(target, tally) for _ in range(_WALKS)),
        flood(lambda: tally.ask(target.port, wide), per_second=10, at_once=10),
    )


async def _walk(target: Target, tally: Tally) -> None:
    cursor = ""
    while True:
        path = f"/v1/usage/export?limit=1000{cursor and f'&cursor={cursor}'}"
        answer = await tally.ask(target.port, request("GET", path, key=target.tenant.read))
        if answer is None or answer.status != 200:
            await asyncio.sleep(REOPEN_SECONDS)
            continue
        following = json.loads(answer.body).get("next_cursor")
        cursor = following or ""
