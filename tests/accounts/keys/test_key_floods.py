"""Floods of invented keys do not delay callers with a key that is not cached yet.

Clients are told apart by ``X-Forwarded-For``, as behind one proxy.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from accounts.keys import keys
from accounts.models import ApiKey
from tests.support.live import Gateway, eventually

BACKLOG = 560
"""More than all places in which unknown keys wait."""
ATTACKER = "198.51.100.7"
VICTIM = "203.0.113.9"
AT_ONCE_SECONDS = 4.0
"""Far below the wait in a shared queue of such a backlog, and enough for a slow machine."""

_numbers = itertools.count(1)


def invented() -> str:
    """A key that was never made, with a valid checksum."""
    body = f"svc_live_{next(_numbers):030d}"
    return body + keys.checksum(body)


async def chat(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], key: str, address: str
) -> int:
    """The status of one small chat request."""
    reader, writer = streams
    body = json.dumps(
        {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: hi"}]}
    ).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        f"authorization: Bearer {key}\r\nx-forwarded-for: {address}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    lines = answer.decode().lower().split("\r\n")
    length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
    await reader.readexactly(length)
    return int(lines[0].split(" ")[1])


@asynccontextmanager
async def flood(port: int, address: str) -> AsyncIterator[dict[int, int]]:
    """Invented keys on ``BACKLOG`` connections, one after the other on each; statuses counted."""
    statuses: dict[int, int] = {}

    async def attack() -> None:
        streams = await asyncio.open_connection("127.0.0.1", port)
        try:
            while True:
                status = await chat(streams, invented(), address)
                statuses[status] = statuses.get(status, 0) + 1
                if status == 503:
                    # A refusal is quick: without a pause the machine would do nothing else.
                    await asyncio.sleep(2)
        finally:
            streams[1].close()

    attackers = [asyncio.create_task(attack()) for _ in range(BACKLOG)]
    try:
        while sum(statuses.values()) < 300:
            assert not any(each.done() for each in attackers)
            await asyncio.sleep(0.05)
        yield statuses
        assert not any(each.done() for each in attackers)
    finally:
        for each in attackers:
            each.cancel()
        await asyncio.gather(*attackers, return_exceptions=True)


async def timed(port: int, key: str, address: str) -> tuple[int, float]:
    streams = await asyncio.open_connection("127.0.0.1", port)
    began = time.monotonic()
    try:
        return await chat(streams, key, address), time.monotonic() - began
    finally:
        streams[1].close()


def test_under_a_flood_fresh_keys_are_found_and_after_a_restart_used_keys_do_not_wait(
    gateway: Gateway, start_gateway: Callable[..., Gateway]
) -> None:
    assert gateway.chat("say: hi").status_code == 200
    eventually(lambda: ApiKey.objects.get(pk=gateway.api_key.pk).last_used_at)
    fresh = [gateway.mint() for _ in range(3)]

    restarted = start_gateway(SVC_PROXIES="1")

    async def tried() -> list[tuple[int, float]]:
        async with flood(restarted.port, ATTACKER) as statuses:
            # The used key comes from where the flood comes from.
            found = [await timed(restarted.port, gateway.key, ATTACKER)]
            found += [await timed(restarted.port, key, VICTIM) for key in fresh]
            assert set(statuses) <= {401, 503}
            return found

    outcomes = asyncio.run(tried())
    assert [status for status, _ in outcomes] == [200] * 4, outcomes
    assert max(seconds for _, seconds in outcomes) < AT_ONCE_SECONDS, outcomes
