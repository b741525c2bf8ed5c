"""The production server: uvicorn on two addresses, with a drain before it stops."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from types import FrameType

import uvicorn
from django.conf import settings

from svc_project.bounds import BoundedWebSocket
from svc_project.http_protocol import ContractHttpProtocol
from svc_project.lib.drain import drain

_ABORT_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_COLLECT_EVERY = 20_000
"""Container objects made and not freed, before the collector looks for cycles among them."""


class DrainingServer(uvicorn.Server):
    """On SIGTERM goes on accepting, so that new requests get a clear 503, until none runs.

    With ``SVC_DRAIN_DELAY_SECONDS`` it goes on serving for that long first, not ready any more, so
    that a load balancer can look elsewhere before anybody is refused. Requests that outlast
    ``SVC_DRAIN_SECONDS`` are told to end and write their rows. A second Ctrl-C stops at once; a
    second SIGTERM changes nothing, because service managers signal every process of a group and
    the parent of the workers signals them again.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        # What is loaded by now stays: the collector need not walk over it again and again. The
        # objects of a request are freed by their counts, so it need not look often either.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_EVERY, *gc.get_threshold()[1:])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if drain.stopping:
            if sig == signal.SIGINT:
                self.should_exit = self.force_exit = True
        elif self._loop is None:
            self.should_exit = True
        else:
            drain.announce()
            self._loop.call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        await asyncio.sleep(settings.SVC_DRAIN_DELAY_SECONDS)
        drain.begin()
        await _until_idle(settings.SVC_DRAIN_SECONDS)
        if drain.running:
            drain.abort()
            await _until_idle(_ABORT_SECONDS)
        self.should_exit = True


async def _until_idle(seconds: float) -> None:
    deadline = asyncio.get_running_loop().time() + seconds
    while drain.running and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  # a look is simpler than an event, and rare
        await asyncio.sleep(_LOOK_SECONDS)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ``OSError`` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def run(sockets: list[socket.socket]) -> None:
    """Serve on ``sockets`` in this process until a signal; returns when everything is written."""
    config = uvicorn.Config(
        "svc_project.asgi:application",
        loop="uvloop",
        http=ContractHttpProtocol,
        ws=BoundedWebSocket,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=10,
        ws_ping_interval=settings.SVC_WEBSOCKET_PING_SECONDS or None,
        # A ping waits behind the sound that the client has not read yet, so its answer proves
        # nothing: who says nothing is ended by the session, who reads nothing by its connection.
        ws_ping_timeout=None,
        # Larger than the largest message, so that a session that breaks that limit is told so.
        ws_max_size=256 * 1024,
        ws_max_queue=8,
    )
    DrainingServer(config).run(sockets)
