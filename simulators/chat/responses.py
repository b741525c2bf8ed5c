"""Reads request bodies."""

from __future__ import annotations

from typing import Any

from simulators import serving
from simulators.chat.wire import ErrorObject, Refusal
from simulators.serving import MAX_BODY_BYTES, BodyTooLarge


async def read_body(receive: Any) -> bytes:
    """Read the request's body. Raises ``Refusal`` above 64 MiB, ``ConnectionError`` on a disconnect."""
    try:
        return await serving.read_body(receive)
    except BodyTooLarge:
        message = f"The body is larger than {MAX_BODY_BYTES} bytes."
        raise Refusal(413, ErrorObject(message, "invalid_request_error")) from None
