"""The production server: uvicorn on two addresses, with a drain before it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType

import uvicorn
from django.conf import settings

from core import garbage
from core.asgi.drain import drain
from svc_project.serving.http_protocol import PipelinedProtocol
from svc_project.serving.lifeline import BEAT_SECONDS, WorkerEnd
from svc_project.serving.websocket_protocol import BoundedWebSocket

log = logging.getLogger(__name__)

_ABORT_SECONDS = 5.0
_SHUTDOWN_SECONDS = 10
_CLOSE_SECONDS = 2.0
_LAST_SECONDS = 30.0
"""The time for the end of a process after its drain: rows, engines, connections."""
_LOOK_SECONDS = 0.05
_BACKLOG = 2048


class DrainingServer(uvicorn.Server):
    """On SIGTERM takes no new work, and ends when no request runs.

    With ``SVC_DRAIN_DELAY_SECONDS`` it first serves for that long while it reports not ready, so
    that a load balancer can switch before any request is refused. Then new connections are refused,
    which every proxy tries at another server, and requests on open ones get a clear 503. Requests
    that outlast
    ``SVC_DRAIN_SECONDS`` are aborted and write their rows. A second Ctrl-C stops at once; a
    second SIGTERM changes nothing, because service managers signal every process of a group and
    the parent of the workers signals them again. SIGHUP works as SIGTERM.

    With a ``line`` it is a worker: it sends the parent heartbeats, and when the parent has ended,
    for any reason, it drains and ends too.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, config: uvicorn.Config, line: WorkerEnd | None = None) -> None:
        super().__init__(config)
        self._line = line
        self.servers = []
        self._listening: list[socket.socket] = []
        self._addresses_closed = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = list(sockets or ())
        try:
            await super().startup(sockets)
        except OSError as error:
            # Another server reserved the address as well, and listened first.
            log.error("Cannot listen: %s", error.strerror)
            await self.lifespan.shutdown()
            sys.exit(1)
        if self._line is not None:
            self._beat(self._line)
        garbage.keep_loaded_objects()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if drain.stopping:
            if sig == signal.SIGINT:
                self.should_exit = self.force_exit = True
        elif self._loop is None:
            self.should_exit = True
        else:
            drain.announce()
            self._loop.call_soon_threadsafe(self._begin_drain)

    def orphaned(self) -> None:
        """Drain and end because the parent has ended; called in a thread of its own.

        It closes the addresses first, because the next server needs them before the drain is over.
        No parent is left to kill a worker that hangs, so the worker ends itself.
        """
        log.warning("the parent of this worker has ended; the worker drains and ends")
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, signal.SIGTERM)
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by now
                self._loop.call_soon_threadsafe(self._close_addresses)
            if not self._addresses_closed.wait(_CLOSE_SECONDS):
                self._shut_addresses()
        time.sleep(settings.SVC_DRAIN_DELAY_SECONDS + settings.SVC_DRAIN_SECONDS)
        time.sleep(_ABORT_SECONDS + _SHUTDOWN_SECONDS + _LAST_SECONDS)
        os._exit(1)

    def _close_addresses(self) -> None:
        for listening in self.servers:
            listening.close()
        for each in self._listening:
            each.close()
        self._addresses_closed.set()

    def _shut_addresses(self) -> None:
        """Shut the listening sockets down in the kernel (Linux), for a loop that hangs."""
        for each in self._listening:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _beat(self, line: WorkerEnd) -> None:
        line.beat()
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat, line)

    def _begin_drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        await asyncio.sleep(settings.SVC_DRAIN_DELAY_SECONDS)
        drain.begin()
        self._close_addresses()
        await _wait_until_idle(settings.SVC_DRAIN_SECONDS)
        if drain.running:
            drain.abort()
            await _wait_until_idle(_ABORT_SECONDS)
        self.should_exit = True


async def _wait_until_idle(seconds: float) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while drain.running and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  # polling is simpler than an event, and rare
        await asyncio.sleep(_LOOK_SECONDS)


def bind(host: str, port: int) -> socket.socket:
    """Reserve an address; connections to it are refused until a process listens on the socket.

    So nobody waits for a start: a proxy tries the next server. Raises ``OSError`` when the address
    is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    reserved = socket.socket(family, socket.SOCK_STREAM)
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket, whose connections wait for a server. Raises ``OSError``."""
    listener = bind(host, port)
    try:
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def run(sockets: list[socket.socket], line: WorkerEnd | None = None) -> None:
    """Serve on ``sockets`` in this process until a signal; returns when all rows are written.

    ``line`` connects a worker to its parent.
    """
    config = uvicorn.Config(
        "svc_project.asgi:application",
        interface="asgi3",
        loop="uvloop",
        http=PipelinedProtocol,
        ws=BoundedWebSocket,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        ws_ping_interval=settings.SVC_WEBSOCKET_PING_SECONDS or None,
        # A ping waits behind the sound that the client has not read yet, so its answer proves
        # nothing: the session ends idle clients, the connection ends clients that stop reading.
        ws_ping_timeout=None,
        # Larger than the largest message, so that a session over that limit gets an error message.
        ws_max_size=256 * 1024,
        ws_max_queue=8,
    )
    server = DrainingServer(config, line)
    # Under nohup SIGHUP is ignored: the server outlives its terminal.
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, server.handle_exit)
    if line is not None:
        line.watch(server.orphaned)
    server.run(sockets)
