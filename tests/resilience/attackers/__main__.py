"""``python -m tests.resilience.attackers NAME TARGET [idle]``: one attack, until standard input ends.

With ``idle`` it takes only processor time that nothing else wants, as if it had a host of its own. It
prints ``begun`` when the first request was answered or the first connection opened, and at its end
the counts of answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress

from tests.resilience import wire
from tests.resilience.attackers import ATTACKERS
from tests.resilience.attackers.tools import BEGUN, IDLE, Tally
from tests.resilience.target import load

NICENESS = 15
ADDRESS = "127.66.0.1"
"""The attackers', another than the victim's 127.0.0.1."""


async def main(name: str, path: str, priority: str = "") -> None:
    tally = Tally()
    if priority == IDLE and sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    attack = asyncio.create_task(ATTACKERS[name](load(path), tally))
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    waiting = asyncio.create_task(closed.wait())
    begun = asyncio.create_task(tally.begun.wait())
    await asyncio.wait([begun, attack, waiting], return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    print(BEGUN, flush=True)
    await asyncio.wait([attack, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    attack.cancel()
    with suppress(asyncio.CancelledError):
        await attack
    print(json.dumps(tally.answers), flush=True)


if __name__ == "__main__":
    os.nice(NICENESS)
    wire.source_address = ADDRESS
    asyncio.run(main(*sys.argv[1:]))
