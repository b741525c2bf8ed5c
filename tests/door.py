"""A door in front of the model simulator that a test can slam shut."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Door:
    """A TCP proxy to ``port``; while ``shut`` it takes a request's first bytes and hangs up.

    ``lost`` counts the connections that ended so.
    """

    def __init__(self, port: int) -> None:
        self.shut = False
        self.lost = 0
        self._target = port
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def slam(self) -> None:
        """Shut it, and hang up on those who are in it."""
        self.shut = True
        while self._open:
            _end(self._open.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _end(self._listener)
        self.slam()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass, args=[client], daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        if self.shut:
            with suppress(OSError):
                client.recv(65536)
            self.lost += 1
            _end(client)
            return
        server = socket.create_connection(("127.0.0.1", self._target))
        self._open += [client, server]
        threading.Thread(target=_copy, args=[server, client], daemon=True).start()
        _copy(client, server)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65536):
            sink.sendall(part)
    _end(source)
    _end(sink)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
