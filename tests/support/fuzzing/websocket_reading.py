"""Reads what a server sends on a WebSocket connection, and accepts nothing but exact frames."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass, field

from tests.support.fuzzing.http_conversations import Conversation
from tests.support.fuzzing.http_reading import Malformed, faults_of_http, read_received, read_sent

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_OUR_FAULTS = {1011, 1014, 4502}
"""Close codes of a server with which something is wrong (RFC 6455, section 7.4; the contract).

No client sends them here, whose codes the server sends back.
"""


@dataclass
class Frames:
    """What a client finds behind a 101."""

    texts: list[str] = field(default_factory=list)
    closed_with: int | None = None
    """The code of the close frame; 1005 for one without."""


def read_frames(content: bytes, *, deflates: bool) -> Frames:
    """Read whole frames; a last part is left. Raises ``Malformed``."""
    found = Frames()
    inflate = zlib.decompressobj(wbits=-15)
    while len(content) >= 2:
        first, opcode = content[0], content[0] & 0x0F
        at, size = _length(content, is_control=opcode >= _CLOSE)
        if len(content) < at + size:
            return found
        if first & 0x80 == 0 or content[1] & 0x80 or first & 0x30:
            raise Malformed(f"a fragment, a mask or a reserved bit: {content[:20]!r}")
        payload, content = content[at : at + size], content[at + size :]
        if first & 0x40:
            if not (deflates and opcode in (_TEXT, _BINARY)):
                raise Malformed("compression that was not agreed")
            payload = inflate.decompress(payload + b"\0\0\xff\xff")
        if found.closed_with is not None and opcode != _PONG:
            # Pings are answered until the client's own close frame (RFC 6455, section 5.5.2).
            raise Malformed(f"opcode {opcode} behind the close frame")
        if opcode == _TEXT:
            found.texts.append(_utf8(payload))
        elif opcode == _CLOSE:
            found.closed_with = _code_of(payload)
        elif opcode not in (_BINARY, _PING, _PONG):
            raise Malformed(f"opcode {opcode}")
    return found


def _length(content: bytes, *, is_control: bool) -> tuple[int, int]:
    """Return where a frame's payload begins, and its length; so far as they have arrived."""
    said = content[1] & 0x7F
    if said < 126:
        return 2, said
    form, least = (">H", 126) if said == 126 else (">Q", 65536)
    at = 2 + struct.calcsize(form)
    if len(content) < at:
        return at, 0
    (size,) = struct.unpack_from(form, content, 2)
    if size < least or is_control:
        raise Malformed("a length in a longer form than it needs")
    return at, int(size)


def _utf8(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"a text that is not UTF-8: {content[:40]!r}") from error


def _code_of(payload: bytes) -> int:
    if not payload:
        return 1005
    if len(payload) == 1:
        raise Malformed("half a close code")
    (code,) = struct.unpack_from(">H", payload)
    _utf8(payload[2:])
    if not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):
        raise Malformed(f"close code {code}")
    return int(code)


def frames_in(conversation: Conversation, received: bytes) -> Frames | None:
    """Return what follows the 101; None without one. Raises ``Malformed``."""
    found = read_received(received, read_sent(conversation.sent).methods)
    if not found.answers or found.answers[-1].status != 101:
        return None
    agreed = found.answers[-1].headers.get("sec-websocket-extensions", "")
    return read_frames(found.rest, deflates="permessage-deflate" in agreed)


def is_over(conversation: Conversation, received: bytes) -> bool:
    """Whether nothing more has to come, and the server may wait for the client's end."""
    try:
        frames = frames_in(conversation, received)
    except Malformed:
        return True
    if frames is not None:
        return frames.closed_with is not None
    sent = read_sent(conversation.sent)
    return sent.stays_open and len(read_received(received, sent.methods).answers) >= len(
        sent.methods
    )


def faults_of(conversation: Conversation, received: bytes, *, ended: bool) -> list[str]:
    """Say what is wrong with a connection that was to become a WebSocket."""
    faults = faults_of_http(conversation, received, ended=ended)
    try:
        frames = frames_in(conversation, received)
    except Malformed as malformed:
        return [*faults, str(malformed)]
    if frames is None:
        return faults
    if frames.closed_with is None and not ended:
        faults.append("silence: neither a close frame nor an end")
    if frames.closed_with in _OUR_FAULTS:
        faults.append(f"close code {frames.closed_with}")
    return faults + [fault for text in frames.texts for fault in _faults_of_text(text)]


def _faults_of_text(text: str) -> list[str]:
    try:
        message = json.loads(text)
    except ValueError:
        return [f"a message that is not JSON: {text[:80]!r}"]
    return [] if isinstance(message, dict) and "type" in message else [f"no message: {text[:80]!r}"]
