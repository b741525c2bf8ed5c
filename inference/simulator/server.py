"""Running the simulator: uvicorn with uvloop and httptools, and the connection within reach."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from inference.simulator.app import Simulator
from inference.simulator.options import Options
from inference.simulator.requests_log import RequestLog
from inference.tokenizers import load


class _Protocol(HttpToolsProtocol):
    """Puts the transport where the application finds it: ASGI has no word for cutting a wire."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["transport"] = self.transport


class _Server(uvicorn.Server):
    """Announces its address when it listens, and drops its connections when told to stop."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        self._announce(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


def serve(options: Options, announce: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT; ``announce`` gets the address as soon as it is open.

    Raises ``UnknownTokenizer`` when the tokenizer cannot be loaded, ``OSError`` when the record
    file cannot be opened, ``SystemExit`` when the port is taken.
    """
    if not options.fast:
        load(options.tokenizer)
    log = RequestLog(options.record)
    config = uvicorn.Config(
        Simulator(options, log),
        host=options.host,
        port=options.port,
        loop="uvloop",
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    # uvicorn raises the signal once more when it has stopped; being told to stop is no failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.closing(log), contextlib.suppress(KeyboardInterrupt):
        _Server(config, announce).run()
