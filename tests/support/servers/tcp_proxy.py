"""A TCP proxy that a test puts in front of a server, to break the connections to it.

It runs on an event loop of its own; every method may be called from the test at any time, also
while connections are open, and has taken effect when it returns.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Self

SECONDS = 60.0
_PIECE = 65536
_ACCEPTING_TURNS: Final = 5
"""asyncio needs three turns of its loop from accepting a connection to the call of ``_take``."""


class Way(Enum):
    """The direction in which bytes go."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class End(Enum):
    """How a connection ends: FIN, or RST."""

    FIN = "fin"
    RST = "rst"


def end_connection(writer: asyncio.StreamWriter, how: End) -> None:
    """Close the connection of ``writer``, by FIN or by RST."""
    if how is End.FIN:
        writer.close()
        return
    # A linger time of 0 makes close() send a RST (socket(7), SO_LINGER).
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
    writer.transport.abort()


@dataclass(frozen=True)
class Cut:
    """End a connection when ``after`` more bytes have gone ``way``, and ``pause`` seconds later.

    The bytes are counted over all connections from the moment at which the cut was set.
    """

    way: Way
    after: int
    end: End
    pause: float = 0.0


@dataclass
class _Rules:
    """The current rules. ``swallowed``: directions whose bytes are read and dropped."""

    delays: dict[Way, float] = field(default_factory=dict)
    swallowed: frozenset[Way] = frozenset()
    cut: Cut | None = None
    left: int = 0
    reply_to: bytes = b""
    """The connection that sends this is reset instead of receiving the answer."""
    hangs_up: bool = False
    """Whether new connections are closed after their first bytes, which are not passed on."""
    held: frozenset[Way] = frozenset()
    """Directions whose bytes wait in the proxy."""


class _Link:
    """One connection through the proxy."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.client = client
        self.server = server
        self.forgotten = False
        """Whether it drops all bytes from now on, regardless of the rules."""
        self.deaf = False
        """Whether the next bytes from the server are the answer that must be lost."""

    def end(self, how: End) -> None:
        for writer in (self.client, self.server):
            end_connection(writer, how)


class FaultProxy:
    """A proxy in front of ``host:port``, on a ``port`` of its own. By default it passes all bytes on."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._rules = _Rules()
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._changed = asyncio.Event()
        self.port = 0
        self.accepted = 0
        """How many connections were accepted so far."""
        self.carried = dict.fromkeys(Way, 0)
        """How many bytes went in each direction so far."""
        self.struck = 0
        """How often a cut, the loss of an answer, or the end of a new connection has happened."""
        self._thread.start()
        self._wait_for(self._listen())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._wait_for(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()

    # -- controls for tests ------------------------------------------------------------------

    def heal(self) -> None:
        """Pass all bytes on. Connections that lost bytes are reset, because they cannot recover."""
        self._wait_for(self._heal())

    def refuse(self) -> None:
        """Refuse new connections, and reset the open ones."""
        self._wait_for(self._refuse())

    def blackhole(self) -> None:
        """Accept connections, and drop all bytes on them and on the open ones."""
        self._set(_Rules(swallowed=frozenset(Way)))

    def half_open(self, way: Way) -> None:
        """Drop the bytes of one direction; the other works."""
        self._set(_Rules(swallowed=frozenset({way})))

    def forget_open(self) -> None:
        """Drop all bytes on the connections that are open now; new ones work.

        Like a firewall that has dropped their state; ``heal`` does not reset these.
        """

        async def forget() -> None:
            for link in self._links:
                link.forgotten = True

        self._wait_for(forget())

    def hang_up(self) -> None:
        """Read the first bytes of each new connection and close it; the open ones work."""
        self._set(_Rules(hangs_up=True))

    def hold(self, way: Way) -> None:
        """Keep the bytes of one direction until ``heal``, which delivers them."""
        self._set(_Rules(held=frozenset({way})))

    def delay(self, seconds: float, way: Way = Way.TO_CLIENT) -> None:
        """Delay every piece in direction ``way`` by ``seconds``."""
        self._set(_Rules(delays={way: seconds}))

    def cut(self, cut: Cut) -> None:
        """End the connection that reaches ``cut``; later ones pass."""
        self._set(_Rules(cut=cut, left=cut.after))

    def lose_reply_to(self, sent: bytes) -> None:
        """Pass ``sent`` on, wait until the server has answered, and reset instead of passing the answer.

        Happens once; the server has executed the request, and the client cannot know.
        """
        self._set(_Rules(reply_to=sent))

    def reset(self) -> None:
        """Reset the open connections; new ones pass."""
        self._wait_for(self._reset())

    @property
    def open_connections(self) -> int:
        return len(self._links)

    # -- the loop's side ---------------------------------------------------------------------

    def _wait_for(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(SECONDS)

    def _set(self, rules: _Rules) -> None:
        async def apply() -> None:
            self._apply(rules)

        self._wait_for(apply())

    def _apply(self, rules: _Rules) -> None:
        self._rules = rules
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._take, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _heal(self) -> None:
        if self._rules.swallowed:
            await self._reset()
        self._apply(_Rules())
        await self._listen()

    async def _refuse(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            # A closed server loses the connections that asyncio has accepted and not yet passed on.
            for listener in server.sockets:
                self._loop.remove_reader(listener.fileno())
            for _ in range(_ACCEPTING_TURNS):
                await asyncio.sleep(0)
            server.close()
        await self._reset()

    async def _reset(self) -> None:
        for link in tuple(self._links):
            link.end(End.RST)

    async def _close(self) -> None:
        await self._refuse()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the aborted transports close their sockets

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        try:
            await self._relay(reader, writer)
        except asyncio.CancelledError:
            # Not raised again: asyncio would log it as the failure of a connection.
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._rules.hangs_up:
            with suppress(OSError):
                await reader.read(_PIECE)
            self.struck += 1
            writer.close()
            return
        try:
            from_server, to_server = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, to_server)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._carry(link, Way.TO_SERVER, reader, to_server),
                self._carry(link, Way.TO_CLIENT, from_server, writer),
            )
        finally:
            self._links.discard(link)
            link.end(End.FIN)

    async def _carry(
        self, link: _Link, way: Way, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        """Pass bytes in one direction until the source ends, then end the sink.

        A reset is passed on, so that a server does not keep the connection of a killed client.
        """
        try:
            while piece := await source.read(_PIECE):
                self.carried[way] += len(piece)
                if delay := self._rules.delays.get(way):
                    await asyncio.sleep(delay)
                while way in self._rules.held:
                    await self._changed.wait()
                if link.forgotten or way in self._rules.swallowed:
                    continue
                await self._pass(link, way, piece, sink)
            if way not in self._rules.swallowed and sink.can_write_eof():
                sink.write_eof()
        except OSError:
            if not link.forgotten and way not in self._rules.swallowed:
                link.end(End.RST)

    async def _pass(self, link: _Link, way: Way, piece: bytes, sink: asyncio.StreamWriter) -> None:
        rules = self._rules
        if way is Way.TO_SERVER and rules.reply_to and rules.reply_to in piece:
            link.deaf = True
            self._rules = _Rules()
        elif way is Way.TO_CLIENT and link.deaf:
            self.struck += 1
            link.end(End.RST)
            return
        cut = rules.cut
        if cut is None or cut.way is not way or len(piece) < rules.left:
            if cut is not None and cut.way is way:
                rules.left -= len(piece)
            sink.write(piece)
            await sink.drain()
            return
        sink.write(piece[: rules.left])
        await sink.drain()
        self._rules = _Rules()
        self.struck += 1
        if cut.pause:
            await asyncio.sleep(cut.pause)
        link.end(cut.end)
