"""A client on a bare socket, which sends any bytes and disconnects at any time."""

from __future__ import annotations

import json
import socket
import struct
from enum import Enum
from typing import Any, Self

from tests.support.live import Gateway

SECONDS = 60.0
CHAT = "POST /v1/chat/completions"
HANDSHAKE = (
    *("upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13"),
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
)


class Disconnect(Enum):
    """The ways in which a client disconnects."""

    FIN = "fin"
    RST = "rst"
    HALF_CLOSE = "half-close"


def leave(gateway: Gateway, model: str, frames: int, text: str = "hello", **fields: Any) -> None:
    """Ask for a stream, read ``frames`` of its frames, and disconnect."""
    with RawClient(gateway) as client:
        client.chat(text, model, stream=True, **fields)
        client.read_until(frames, b"data: ")
        assert client.received.count(b"data: ") >= frames, "the stream ended before"
        client.disconnect()


class RawClient:
    """One connection to a gateway; ``received`` is everything that was read.

    ``port`` is the inference surface's unless another is given. ``receive_buffer``: about so many
    bytes are taken from the network before they are read.
    """

    def __init__(
        self, gateway: Gateway, port: int | None = None, receive_buffer: int | None = None
    ) -> None:
        self._gateway = gateway
        self._socket = socket.socket()
        self._socket.settimeout(SECONDS)
        if receive_buffer is not None:
            # Before the connection is made, which announces both. With the large segments of the
            # loopback network the sender's kernel would take more than a megabyte.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self._socket.connect(("127.0.0.1", port or gateway.port))
        self.received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def set_timeout(self, seconds: float) -> None:
        """Set the timeout in seconds after which sends and reads raise ``TimeoutError``."""
        self._socket.settimeout(seconds)

    def send(self, content: bytes) -> None:
        self._socket.sendall(content)

    def head(self, *headers: str, key: str | None = None, line: str = CHAT) -> None:
        """Send the request line and headers of a request."""
        lines = [f"{line} HTTP/1.1", "host: 127.0.0.1", *headers]
        if key is not None:
            lines.append(f"authorization: Bearer {key}")
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def upgrade(self, key: str, *headers: str) -> bytes:
        """Ask for a session of the speech stream; return the answer's head, which is then dropped."""
        self.head(*HANDSHAKE, *headers, key=key, line="GET /v1/audio/speech/stream")
        self.read_until(1, b"\r\n\r\n")
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        return head.lower()

    def chat(self, text: str, model: str = "running", **fields: Any) -> None:
        """Send a whole chat request."""
        body = json.dumps(
            {
                "model": self._gateway.models.get(model, model),
                "messages": [{"role": "user", "content": text}],
                **fields,
            }
        ).encode()
        self.head(f"content-length: {len(body)}", key=self._gateway.key)
        self.send(body)

    def read(self, most: int = 65536) -> bytes:
        """Read the next bytes; empty at the end, also when the connection was reset."""
        try:
            read = self._socket.recv(most)
        except ConnectionError:
            return b""
        except TimeoutError as error:
            error.add_note(f"Received until then: {self.received[-2000:]!r}")
            raise
        self.received += read
        return read

    def read_until(self, count: int, marker: bytes) -> None:
        """Read until ``marker`` has come ``count`` times, or the connection ends."""
        while self.received.count(marker) < count and self.read():
            pass

    def rest(self) -> bytes:
        """Read everything up to the end of the connection."""
        while self.read():
            pass
        return self.received

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Read status, headers and body of an answer with a length; the connection stays open."""
        self.read_until(1, b"\r\n\r\n")
        head, _, body = self.received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        while len(body) < int(headers["content-length"]):
            read = self.read()
            assert read, "the answer breaks off"
            body += read
        return int(first.split()[1]), headers, body

    @property
    def request_id(self) -> str:
        """The ``x-request-id`` of the answer, whose head must have been read."""
        head = self.received.partition(b"\r\n\r\n")[0].decode("latin-1")
        found = [line for line in head.split("\r\n") if line.startswith("x-request-id: ")]
        assert found, head
        return found[0].partition(": ")[2]

    def disconnect(self, how: Disconnect = Disconnect.FIN) -> None:
        """Disconnect; after a half-close the socket can still be read."""
        if how is Disconnect.HALF_CLOSE:
            self._socket.shutdown(socket.SHUT_WR)
            return
        if how is Disconnect.RST:
            # Linger for zero seconds: close() sends a RST (socket(7), SO_LINGER).
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()
