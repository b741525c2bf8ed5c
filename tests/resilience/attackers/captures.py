"""The holder of an inference key has each of many large chats captured for diagnosis.

He hopes to fill the database, which keeps captures for days.
"""

from __future__ import annotations

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import chat, request

_SIZE = 60_000


async def attack(target: Target, tally: Tally) -> None:
    content = request(
        "POST",
        "/v1/chat/completions",
        key=target.tenant.inference,
        body=chat(target, "a " * (_SIZE // 2) + "[[sim tokens=1]]"),
        headers={"x-svc-diagnostic-capture": "1"},
    )
    await flood(lambda: tally.ask(target.port, content), per_second=20, at_once=8)
