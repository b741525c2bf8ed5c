"""The holder of an inference key writes a thousand requests behind each other on every connection.

He reads nothing between, and hopes that what waits in one connection costs memory or turns of others.
"""

from __future__ import annotations

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import connect, head

_REQUESTS = 1000


async def attack(target: Target, tally: Tally) -> None:
    one = head("GET", "/v1/models", key=target.tenant.inference)
    probe = head("GET", "/livez")
    content = (one + probe * 9) * (_REQUESTS // 10)

    async def pipeline() -> None:
        reader, writer = await connect(target.port)
        try:
            writer.write(content)
            answered = 0
            while answered < _REQUESTS and (part := await reader.read(262_144)):
                answered += part.count(b"HTTP/1.1 ")
            tally.add(f"answered {answered}")
        finally:
            writer.transport.abort()

    await flood(pipeline, per_second=4, at_once=8)
