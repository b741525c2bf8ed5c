"""Somebody without a key sends bodies to pages that take none, and chats that never begin.

He holds 2.5 MB on each of many connections, one body without an end, and large pages that he does not
read, and hopes to fill memory, disk and the room for requests.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.resilience.attackers.tools import REOPEN_SECONDS, Tally, hold
from tests.resilience.target import Target
from tests.resilience.wire import connect, head

_HELD = 60
_PART = b"x" * 2_500_000
_SILENT = 300
_UNREAD = 30
_LARGE_PAGE = "/static/admin/js/vendor/xregexp/xregexp.js"
_BUFFER = 4096
_BLOCK = b"%x\r\n" % 262_144 + b"x" * 262_144 + b"\r\n"
_BLOCK_SECONDS = 0.02


async def attack(target: Target, tally: Tally) -> None:
    length = {"Content-Length": str(len(_PART) + 100_000)}
    chunked = {"Transfer-Encoding": "chunked"}
    pages = ("/v1/models", "/v1/usage", "/console/login", "/nonexistent")
    await asyncio.gather(
        *(
            hold(
                target.port,
                head("POST", page, headers=length) + _PART,
                _HELD // len(pages),
                tally,
                drip=b"x",
            )
            for page in pages
        ),
        hold(
            target.port, head("POST", "/v1/chat/completions", headers=chunked), _SILENT // 2, tally
        ),
        hold(
            target.speech_port,
            head("POST", "/v1/audio/speech", headers=chunked),
            _SILENT // 2,
            tally,
        ),
        hold(
            target.port,
            head("GET", _LARGE_PAGE),
            _UNREAD,
            tally,
            reads=False,
            receive_buffer=_BUFFER,
        ),
        _endless(target, tally),
    )


async def _endless(target: Target, tally: Tally) -> None:
    """A body that goes on as long as anybody takes it, at 13 MB/s."""
    while True:
        with suppress(OSError):
            _, writer = await connect(target.port)
            tally.add("opened")
            try:
                writer.write(head("POST", "/v1/usage", headers={"Transfer-Encoding": "chunked"}))
                while True:
                    writer.write(_BLOCK)
                    await writer.drain()
                    await asyncio.sleep(_BLOCK_SECONDS)
            finally:
                writer.transport.abort()
        await asyncio.sleep(REOPEN_SECONDS)
