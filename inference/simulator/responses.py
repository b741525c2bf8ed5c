"""Plain HTTP answers over ASGI."""

from __future__ import annotations

from typing import Any

import msgspec

from inference.simulator.wire import ErrorObject, Refusal

JSON = b"application/json"
MAX_BODY_BYTES = 64 * 1024 * 1024

Header = tuple[bytes, bytes]


async def respond(
    send: Any,
    status: int,
    content: Any,
    content_type: bytes = JSON,
    *,
    extra: tuple[Header, ...] = (),
) -> None:
    """One whole response; ``content`` that is not bytes becomes JSON."""
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Any, refusal: Refusal) -> None:
    """The convention's error shape."""
    await respond(send, refusal.status, {"error": refusal.error})


async def read_body(receive: Any) -> bytes:
    """The request's body. Raises ``Refusal`` above 64 MiB, ``ConnectionError`` when it breaks off."""
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ConnectionError("The caller hung up before its request was complete.")
        parts.append(event["body"])
        size += len(event["body"])
        if size > MAX_BODY_BYTES:
            message = f"The body is larger than {MAX_BODY_BYTES} bytes."
            raise Refusal(413, ErrorObject(message, "invalid_request_error"))
        if not event["more_body"]:
            return b"".join(parts)
