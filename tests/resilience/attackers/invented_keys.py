"""Somebody without a key makes up keys of the right form, hundreds in a second, for every address.

He hopes that looking them up keeps the gateway from looking up the keys of others.
"""

from __future__ import annotations

import asyncio
import secrets
import string
import zlib
from collections.abc import Awaitable

from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import chat, request

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def invented(prefix: str) -> str:
    """A key that passes for one until it is looked up (docs/explain/keys.md)."""
    body = prefix + "".join(secrets.choice(_ALPHABET) for _ in range(30))
    number = zlib.crc32(body.encode())
    check = []
    for _ in range(6):
        number, digit = divmod(number, 62)
        check.append(_ALPHABET[digit])
    return body + "".join(reversed(check))


async def attack(target: Target, tally: Tally) -> None:
    body = chat(target, "hello")

    def ask_a_chat() -> Awaitable[object]:
        content = request("POST", "/v1/chat/completions", key=invented("svc_live_"), body=body)
        return tally.ask(target.port, content)

    def ask_a_page() -> Awaitable[object]:
        return tally.ask(target.port, request("GET", "/v1/models", key=invented("svc_live_")))

    def ask_for_usage() -> Awaitable[object]:
        return tally.ask(target.port, request("GET", "/v1/usage", key=invented("svc_read_")))

    await asyncio.gather(
        flood(ask_a_chat, per_second=150, at_once=600),
        flood(ask_a_page, per_second=50, at_once=150),
        flood(ask_for_usage, per_second=50, at_once=150),
    )
