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
from collections.abc import Callable
from types import FrameType

import uvicorn
from django.conf import settings

from core import garbage
from core.asgi.drain import drain
from svc_project.serving.acceptor import Acceptor, Counts
from svc_project.serving.http_messages import HttpMessages
from svc_project.serving.http_protocol import PipelinedProtocol
from svc_project.serving.lifeline import BEAT_SECONDS, WorkerEnd
from svc_project.serving.listeners import BACKLOG
from svc_project.serving.monitoring import unready_reasons
from svc_project.serving.runtime import runtime
from svc_project.serving.websocket_protocol import BoundedWebSocket

log = logging.getLogger(__name__)

_ABORT_SECONDS = 5.0
_SHUTDOWN_SECONDS = 10
_CLOSE_SECONDS = 2.0
_LAST_SECONDS = 30.0
"""The time for the end of a process after its drain: rows, engines, connections."""
_LAST_ANSWERS_SECONDS = 2.0
"""How long open connections have for one more request after the addresses were closed."""
_LOOK_SECONDS = 0.05


class DrainingServer(uvicorn.Server):
    """On SIGTERM takes no new work, and ends when no request runs.

    With ``SVC_DRAIN_DELAY_SECONDS`` it first serves for that long while it reports not ready, so
    that a load balancer can switch before any request is refused. Then new connections are refused,
    which every proxy tries at another server. From the signal on a connection that is open gets one
    more answer, with ``Connection: close``: a proxy sends its next request elsewhere, and none that it
    has sent is refused, which it would not repeat. Idle connections are closed soon after the
    addresses. Requests that outlast ``SVC_DRAIN_SECONDS`` are aborted and write their rows. A second
    Ctrl-C stops at once; a second SIGTERM changes nothing, because service managers signal every
    process of a group and the parent of the workers signals them again.

    It sends the parent heartbeats on ``line``. Where others serve it takes no connection before the
    parent says so: until then it may not be ready, and never get ready. When the
    parent has ended, for any reason, it drains and ends too. When the parent says that the next
    generation serves, nothing is refused: connections that are open get one more answer each, with
    ``Connection: close``, and the process ends when none is left.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(
        self, config: uvicorn.Config, line: WorkerEnd, counts: Counts | None = None
    ) -> None:
        super().__init__(config)
        self._line = line
        self._counts = counts
        self._acceptors: list[Acceptor] = []
        self.servers = []
        self._listening: list[socket.socket] = []
        self._has_listened = False
        self._is_handed_over = False
        self._handing_over: asyncio.Future[None] | None = None
        self._addresses_closed = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = list(sockets or ())
        waits = self._line.waits
        try:
            await super().startup([])
            if self._is_handed_over:
                self._begin_hand_over()
            elif not self._line.waits:
                await self._listen()
        except OSError as error:
            # Another server reserved the address as well, and listened first. Or a drain that began
            # in the start has closed the address, which is no failure.
            if not drain.stopping:
                log.error("Cannot listen: %s", error.strerror)
            await self.lifespan.shutdown()
            sys.exit(1)
        self._beat()
        garbage.keep_loaded_objects()
        if not waits:  # one that waits has loaded it before
            runtime.load_the_rest()

    def _protocol(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )

    async def _listen(self) -> None:
        """Take connections. Raises ``OSError``."""
        if self._has_listened:
            return
        self._has_listened = True
        if (counts := self._counts) is not None:
            connections = self.server_state.connections
            self._acceptors = [
                Acceptor(each, BACKLOG, self._protocol, connections, counts)
                for each in self._listening
            ]
            return
        loop = asyncio.get_running_loop()
        for each in self._listening:
            server = await loop.create_server(self._protocol, sock=each, backlog=BACKLOG)
            self.servers.append(server)

    def takes_over(self) -> None:
        """Take connections, because the parent says so; called in a thread of its own."""
        self._line.waits = False
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by now
                self._loop.call_soon_threadsafe(self._begin_to_listen)

    def _begin_to_listen(self) -> None:
        if not drain.stopping:
            self._taking_over = asyncio.ensure_future(self._listen())

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

    async def _take_last(self) -> None:
        """Close the addresses, and serve the connections that wait: closing alone would reset them."""
        loop = asyncio.get_running_loop()
        taken = []
        for each in self._listening if self._has_listened else ():
            with contextlib.suppress(OSError):  # until none waits; an orphan has closed it before
                each.setblocking(False)
                while True:
                    accepted, _ = each.accept()
                    accepted.setblocking(False)
                    taken.append(loop.connect_accepted_socket(self._protocol, accepted))
        self._close_addresses()
        await asyncio.gather(*taken, return_exceptions=True)

    def _close_addresses(self) -> None:
        for listening in self.servers:
            listening.close()
        while self._acceptors:
            self._acceptors.pop().close()
        for each in self._listening:
            each.close()
        self._addresses_closed.set()

    def _shut_addresses(self) -> None:
        """Shut the listening sockets down in the kernel (Linux), for a loop that hangs."""
        for each in self._listening:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _beat(self) -> None:
        self._line.beat(is_ready=not unready_reasons())
        asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def handed_over(self) -> None:
        """Finish what runs because the next generation serves; called in a thread of its own.

        The worker may not have begun: one that was just replaced ends as soon as it has.
        """
        self._is_handed_over = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by now
                self._loop.call_soon_threadsafe(self._begin_hand_over)

    def _begin_hand_over(self) -> None:
        if self._handing_over is None:
            self._handing_over = asyncio.ensure_future(self._hand_over())

    async def _hand_over(self) -> None:
        self._close_addresses()
        seconds = settings.SVC_DRAIN_SECONDS
        drain.hand_over(seconds)
        HttpMessages.is_leaving = True
        await _wait_until(lambda: not (drain.running or self.server_state.connections), seconds)
        await self._finish()

    def _begin_drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        HttpMessages.is_leaving = True
        await asyncio.sleep(settings.SVC_DRAIN_DELAY_SECONDS)
        loop, seconds = asyncio.get_running_loop(), settings.SVC_DRAIN_SECONDS
        ends_at = loop.time() + seconds
        drain.hand_over(seconds)
        await self._take_last()
        connections = self.server_state.connections
        await _wait_until(lambda: not connections, min(_LAST_ANSWERS_SECONDS, seconds))
        drain.begin(seconds)
        for each in list(connections):
            if isinstance(each, HttpMessages):
                each.shutdown()  # closes it now if it is idle, else behind its answer
        await _wait_until(lambda: not drain.running, ends_at - loop.time())
        await self._finish()

    async def _finish(self) -> None:
        """End, and abort what still runs."""
        if drain.running:
            drain.abort()
            await _wait_until(lambda: not drain.running, _ABORT_SECONDS)
        self.should_exit = True


async def _wait_until(is_over: Callable[[], bool], seconds: float) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while not is_over() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  # polling is simpler than an event, and rare
        await asyncio.sleep(_LOOK_SECONDS)


def run(sockets: list[socket.socket], line: WorkerEnd, counts: Counts | None) -> None:
    """Serve on ``sockets`` in this process until a signal; returns when all rows are written.

    ``line`` connects this worker to its parent, ``counts`` to the other workers, if there are any.
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
        backlog=BACKLOG,
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
    server = DrainingServer(config, line, counts)
    # A terminal that hangs up signals every process of the group; the parent decides.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    line.watch(server.orphaned, server.handed_over, server.takes_over)
    server.run(sockets)
