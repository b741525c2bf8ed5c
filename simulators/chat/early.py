"""The faults before the headers, which take the place of an answer."""

from __future__ import annotations

import asyncio

from simulators.chat.exchange import Exchange
from simulators.chat.faults import FaultName
from simulators.chat.wire import ErrorObject, Refusal
from simulators.serving import JSON, Broken, break_connection, respond

ELSEWHERE = b"http://127.0.0.1:1/v1/chat/completions"
_SSE = b"text/event-stream; charset=utf-8"
_STATUS_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "service_unavailable_error",
}


async def apply_early_faults(exchange: Exchange) -> None:
    """Apply the early faults of ``exchange``; return when an answer is to follow.

    Raises ``Broken`` when it was answered or broken here, ``Refusal`` for the fault ``status``.
    """
    faults = exchange.faults
    await asyncio.sleep(faults.number(FaultName.SLOW_HEADER) or 0)
    if status := faults.number(FaultName.STATUS):
        error = _simulated_error(int(status))
        dialect = exchange.dialect
        body = dialect.refusal(int(status), error.message) if dialect else None
        raise Refusal(int(status), error, body)
    for name in (FaultName.CUT, FaultName.RESET):
        if faults.early(name):
            break_connection(exchange.transport, reset=name is FaultName.RESET)
    if faults.early(FaultName.HANG):
        await asyncio.Event().wait()
    if await _canned(exchange):
        raise Broken


async def _canned(exchange: Exchange) -> bool:
    """Send the fixed response of a fault, and return whether there was one."""
    send, faults = exchange.send, exchange.faults
    if FaultName.REDIRECT in faults:
        await respond(send, 302, b"", extra=((b"location", ELSEWHERE),))
    elif FaultName.HTML in faults:
        await respond(send, 200, b"<html><body>Welcome</body></html>", b"text/html")
    elif FaultName.EMPTY in faults:
        await respond(send, 200, b"", _SSE if exchange.body.stream else JSON)
    elif FaultName.NULL in faults:
        await respond(send, 200, b"null")
    elif FaultName.ERROR_200 in faults:
        await respond(send, 200, {"error": _simulated_error(500)})
    else:
        return False
    return True


def _simulated_error(status: int) -> ErrorObject:
    kind = _STATUS_TYPES.get(status, "invalid_request_error")
    return ErrorObject(f"A simulated failure of the backend ({status}).", kind)
