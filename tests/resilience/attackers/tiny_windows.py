"""A tenant reads his streams a few bytes at a time, just fast enough to count as a reader.

He hopes that a stream nobody waits for holds its place for as long as he likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally
from tests.resilience.target import Target
from tests.resilience.wire import chat, connect, request

_READERS = 40
_SIP = 64
_SIP_SECONDS = 1.0
_BUFFER = 2048


async def attack(target: Target, tally: Tally) -> None:
    body = chat(target, "tell me [[sim tokens=4000]]", stream=True)
    key = target.tenant.inference
    stream = request("POST", "/v1/chat/completions", key=key, body=body)
    download = request("GET", "/v1/usage/export?format=csv", key=target.tenant.read)
    await asyncio.gather(
        *(
            _sip(target, tally, content)
            for content in (stream, download)
            for _ in range(_READERS // 2)
        )
    )


async def _sip(target: Target, tally: Tally, content: bytes) -> None:
    while True:
        try:
            reader, writer = await connect(target.port, receive_buffer=_BUFFER)
            try:
                writer.write(content)
                first = await reader.read(_SIP)
                tally.add(first[9:12].decode())
                async for _ in _sips(reader):
                    await asyncio.sleep(_SIP_SECONDS)
            finally:
                writer.transport.abort()
        except OSError as error:
            tally.add(type(error).__name__)
        await asyncio.sleep(REOPEN_SECONDS)


async def _sips(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while sip := await reader.read(_SIP):
        yield sip
