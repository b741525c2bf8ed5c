"""Opens WebSockets on bare sockets, sends the cases and judges the frames that come back."""

from __future__ import annotations

import json
import socket
import struct
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from tests.conformance.place import Place
from tests.conformance.results import Outcome, Result
from tests.conformance.websocket.case import BYE, CLOSE, PING, PONG, RSV1, TEXT, Case

_SECONDS: Final = 10.0
_AT_ONCE: Final = 8
_PATH: Final = "/v1/audio/speech/stream"
_END_OF_MESSAGE: Final = b"\x00\x00\xff\xff"


class Ended(Exception):
    """The connection ended, or nothing came, before what was awaited."""


class Connection:
    """A WebSocket of which every frame is seen."""

    def __init__(self, place: Place, extensions: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", place.speech_port), _SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._waiting = b""
        lines = [
            f"GET {_PATH} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {place.speech_key}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ]
        if extensions:
            lines.append(f"Sec-WebSocket-Extensions: {extensions}")
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self._waiting:
            self._read()
        head, _, self._waiting = self._waiting.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        pairs = (line.partition(":") for line in rest)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        self.agreed = headers.get("sec-websocket-extensions", "")
        self.accept = headers.get("sec-websocket-accept", "")
        self._inflate = zlib.decompressobj(-15)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, write: bytes) -> None:
        """Send ``write``, unless the server takes no more."""
        with suppress(ConnectionError, TimeoutError):
            self._socket.sendall(write)

    def event(self) -> str:
        """Return the next event that is no ping. Raises ``Ended``."""
        while True:
            first, second = self._take(2)
            opcode, length = first & 0x0F, second & 0x7F
            if second & 0x80:
                return "a masked frame"
            if length == 126:
                (length,) = struct.unpack("!H", self._take(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", self._take(8))
            payload = self._take(length)
            if opcode == PING:
                continue
            return self._named(opcode, first & RSV1 != 0, payload)

    def ended(self) -> bool:
        """Say whether the server sends nothing more and closes the connection, which it has to do first."""
        if self._waiting:
            return False
        try:
            self._read()
        except Ended as ended:
            return str(ended) == "the connection ended"
        return False

    def _named(self, opcode: int, compressed: bool, payload: bytes) -> str:
        if opcode == PONG:
            return f"pong:{payload.hex()}"
        if opcode == CLOSE:
            return f"close:{struct.unpack('!H', payload[:2])[0] if payload else ''}"
        if compressed:
            payload = self._inflate.decompress(payload + _END_OF_MESSAGE)
        return f"text:{json.loads(payload)['type']}" if opcode == TEXT else f"frame:{opcode}"

    def _take(self, count: int) -> bytes:
        while len(self._waiting) < count:
            self._read()
        found, self._waiting = self._waiting[:count], self._waiting[count:]
        return found

    def _read(self) -> None:
        try:
            read = self._socket.recv(65536)
        except TimeoutError:
            raise Ended("nothing came") from None
        except ConnectionError:
            read = b""
        if not read:
            raise Ended("the connection ended")
        self._waiting += read


def run_table(place: Place, cases: Iterable[Case]) -> list[Result]:
    """Send every case on a connection of its own, some at a time."""

    def result(case: Case) -> Result:
        connection = Connection(place, case.extensions)
        try:
            problem = judge(connection, case)
        except Ended as ended:
            problem = str(ended)
        finally:
            connection.close()
        outcome = Outcome.FAILED if problem else Outcome.PASSED
        return Result(case.name, outcome, f"{case.section}: {problem}" if problem else "")

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(result, cases))


def judge(connection: Connection, case: Case) -> str:
    """Send one case; return what is wrong with what came back, "" where nothing is."""
    if connection.status != 101:
        return f"the handshake was answered with {connection.status}"
    if connection.accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=":
        return f"Sec-WebSocket-Accept is {connection.accept!r}"
    if case.agreed is not None and connection.agreed != case.agreed:
        return f"the extensions are {connection.agreed!r}, not {case.agreed!r}"
    seen: list[str] = []
    for wanted in case.steps:
        if isinstance(wanted, bytes):
            connection.send(wanted)
            continue
        try:
            seen.append(connection.event())
        except Ended as ended:
            return f"{ended} instead of {wanted}, after {seen}"
        if seen[-1] not in wanted.split("|"):
            return f"{seen[-1]} instead of {wanted}, after {seen[:-1]}"
        if seen[-1].startswith("close:"):
            # The end of the handshake that a client owes; where it began it, this one is too much,
            # and the server reads nothing more.
            connection.send(BYE)
            break
    return "" if connection.ended() else "the connection is not closed after the close frame"
