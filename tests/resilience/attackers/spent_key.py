"""The holder of a key whose limit is used up goes on: small chats, bodies of 900 KB, no JSON at all.

He hopes that what is refused costs the gateway more than it costs him.
"""

from __future__ import annotations

import asyncio

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import chat, request

_LARGE = 900_000


async def attack(target: Target, tally: Tally) -> None:
    small = chat(target, "hello")
    numbers = b'{"model":"%s","messages":[],"stop":[%s1]}' % (
        target.model.encode(),
        b"1e-309," * (_LARGE // 7),
    )
    nested = b'{"model":"%s","metadata":[%s[]]}' % (target.model.encode(), b"[]," * (_LARGE // 3))
    broken = b'{"model":"' + b"\\u0041" * (_LARGE // 6)
    large = chat(target, "words " * (_LARGE // 6))

    def chats(body: bytes, per_second: float, at_once: int) -> asyncio.Future[None]:
        content = request("POST", "/v1/chat/completions", key=target.tenant.spent, body=body)
        return asyncio.ensure_future(
            flood(lambda: tally.ask(target.port, content), per_second=per_second, at_once=at_once)
        )

    await asyncio.gather(
        chats(small, 60, 20),
        chats(numbers, 2, 2),
        chats(nested, 2, 2),
        chats(broken, 2, 2),
        chats(large, 2, 2),
    )
