"""Ways in which the database stops doing its part for a gateway, whichever database it is."""

from __future__ import annotations

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from django.db import connection

from usage.models import SpeechRow, UsageRow


@contextmanager
def rows_locked() -> Iterator[None]:
    """Nobody can write rows of the ledger meanwhile; reading goes on."""
    place = connection.settings_dict
    other: Any
    if connection.vendor == "sqlite":
        other = sqlite3.connect(place["NAME"], isolation_level=None)
        statement = "BEGIN EXCLUSIVE"
    else:
        other = psycopg.connect(
            host=place["HOST"],
            port=place["PORT"],
            user=place["USER"],
            password=place["PASSWORD"],
            dbname=place["NAME"],
        )
        tables = ", ".join(f'"{model._meta.db_table}"' for model in (UsageRow, SpeechRow))
        statement = f"LOCK TABLE {tables} IN EXCLUSIVE MODE"
    try:
        other.execute(statement)
        yield
        other.rollback()
    finally:
        other.close()


class CuttableProxy:
    """A TCP proxy in front of a server; while it is cut it refuses and drops every connection."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._cut = False
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        self._drop()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Nothing gets through meanwhile."""
        self._cut = True
        self._drop()
        yield
        self._cut = False

    def _drop(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in (end for pair in pairs for end in pair):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            if self._cut:
                caller.close()
                continue
            pair = (caller, socket.create_connection(self._target))
            with self._lock:
                self._pairs.append(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while read := source.recv(65536):
                sink.sendall(read)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()
