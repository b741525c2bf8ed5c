"""The simulator's answers to what it does not take, and the bodies that it reads."""

from __future__ import annotations

from typing import Any

from inference.simulator.wire import ErrorObject, Refusal
from svc_project.lib import simulation
from svc_project.lib.simulation import MAX_BODY_BYTES, BodyTooLarge, respond


async def refuse(send: Any, refusal: Refusal) -> None:
    """The convention's error shape, or that of a dialect."""
    await respond(send, refusal.status, refusal.body)


async def read_body(receive: Any) -> bytes:
    """The request's body. Raises ``Refusal`` above 64 MiB, ``ConnectionError`` when it breaks off."""
    try:
        return await simulation.read_body(receive)
    except BodyTooLarge:
        message = f"The body is larger than {MAX_BODY_BYTES} bytes."
        raise Refusal(413, ErrorObject(message, "invalid_request_error")) from None
