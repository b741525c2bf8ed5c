"""The messages between a worker and the page process: one request, then the parts of its answer.

Each is a length (4 bytes, big-endian) and MessagePack. A connection carries one request, and its
end before the last part means that the answer is not complete.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from core.ids import request_id
from core.monitoring.current_request import current_id
from svc_project.surfaces import Surface

_LENGTH: Final = struct.Struct(">I")


class PageRequest(msgspec.Struct, array_like=True):
    """What Django reads of an ASGI scope, the whole body, and the id of the request."""

    surface: Surface
    http_version: str
    scheme: str
    method: str
    root_path: str
    path: str
    raw_path: bytes
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    client: tuple[str, int] | None
    server: tuple[str, int | None] | None
    body: bytes
    request_id: str

    @classmethod
    def of(cls, scope: Mapping[str, Any], body: bytes) -> PageRequest:
        """The request of ``scope``, which the current task works for."""
        fields = (name for name in cls.__struct_fields__ if name not in ("body", "request_id"))
        own = {name: scope[name] for name in fields}
        return cls(body=body, request_id=current_id() or request_id(), **own)

    def scope(self) -> dict[str, Any]:
        """The ASGI scope for Django."""
        fields = msgspec.structs.asdict(self)
        del fields["body"], fields["request_id"]
        return {"type": "http", "asgi": {"version": "3.0"}, **fields}


class AnswerHead(msgspec.Struct, array_like=True, tag=1):
    """The status and the headers; ``known``: a caller that the view recognized (``KnownCallers``).

    ``why``: the code and the reason of an error that the view answered (``observation.why``).
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    known: tuple[bytes, str] | None
    why: tuple[str, str | None] | None = None


class AnswerPart(msgspec.Struct, array_like=True, tag=2):
    """Bytes of the body, and whether more follow."""

    body: bytes
    more: bool


_encode = msgspec.msgpack.Encoder().encode
_request = msgspec.msgpack.Decoder(PageRequest)
_answer: msgspec.msgpack.Decoder[AnswerHead | AnswerPart] = msgspec.msgpack.Decoder(
    AnswerHead | AnswerPart
)


def framed(message: PageRequest | AnswerHead | AnswerPart) -> bytes:
    """The bytes of ``message`` on the connection."""
    content = _encode(message)
    return _LENGTH.pack(len(content)) + content


async def read_request(reader: asyncio.StreamReader) -> PageRequest:
    """Read a request. Raises ``asyncio.IncompleteReadError`` and ``ConnectionError``."""
    return _request.decode(await _content(reader))


async def read_answer(reader: asyncio.StreamReader) -> AnswerHead | AnswerPart:
    """Read the next part of an answer. Raises like ``read_request``."""
    return _answer.decode(await _content(reader))


async def _content(reader: asyncio.StreamReader) -> bytes:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return await reader.readexactly(length)
