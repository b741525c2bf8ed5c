"""A server on the test's own event loop that answers each request with the next script, byte by byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.servers.tcp_proxy import End, end_connection


@dataclass(frozen=True)
class Until:
    """Wait for ``event`` before the next step."""

    event: asyncio.Event


Step = bytes | Until | End


@dataclass
class ScriptedServer:
    """``scripts`` are played one a request; the last one is repeated."""

    scripts: list[Sequence[Step]]
    at_connection: Sequence[Step] = ()
    """Played as soon as a connection is made, before a request is read."""
    reads_requests: bool = True
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    """The requests that were read whole, heads and bodies."""
    ends: int = 0
    """Connections that the client has ended."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def url(self, path: str = "/v1/chat") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if not await self._play(self.at_connection, writer):
                return
            while self.reads_requests:
                self.requests.append(await read_request(reader))
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                if not await self._play(script, writer):
                    return
            await asyncio.Event().wait()
        except (asyncio.IncompleteReadError, OSError):
            self.ends += 1
            self.ended.set()
        except asyncio.CancelledError:
            # Python 3.11 logs an error for a cancelled task of a stream server.
            return
        finally:
            writer.close()

    async def _play(self, script: Sequence[Step], writer: asyncio.StreamWriter) -> bool:
        for step in script:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, Until):
                await step.event.wait()
            else:
                end_connection(writer, step)
                return False
        return True


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return head + await reader.readexactly(int(value))
    return head


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


@asynccontextmanager
async def running(
    server: ScriptedServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedServer]:
    """Run ``server`` on a free port of 127.0.0.1."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**20, ssl=tls)
    server.port = port_of(listening)
    before = asyncio.all_tasks()
    try:
        yield server
    finally:
        listening.close()
        mine = [
            task
            for task in asyncio.all_tasks() - before
            if "ScriptedServer.serve" in repr(task.get_coro())
        ]
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)
        await asyncio.sleep(0.01)  # lets the loop close the sockets


def sized(body: bytes, status: int = 200, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"content-length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"
