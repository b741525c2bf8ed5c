"""The simulator as a plain ASGI application: its routes, and faults that take an answer's place."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from core.ids import uuid7_hex
from inference.chat.tokenizers import count_prompt, load
from simulators import serving
from simulators.application import Application, Rejected, header_names, until_disconnected
from simulators.chat.answers.answer import compose, read_ask
from simulators.chat.delivery import answer_streamed, answer_whole
from simulators.chat.dialects import PLAIN, Dialect, parse_dialect
from simulators.chat.exchange import Exchange, Pace, wants_running_usage
from simulators.chat.faults import FaultName
from simulators.chat.options import DEFAULT_MODEL, Options
from simulators.chat.prefix_cache import PrefixCache
from simulators.chat.requests_log import RequestEntry, RequestLog
from simulators.chat.wire import (
    ChatBody,
    ErrorObject,
    Rejection,
    parse_chat,
    parse_object,
)
from simulators.serving import JSON, MAX_BODY_BYTES, BodyTooLarge, Broken, break_connection, respond

ELSEWHERE = b"http://127.0.0.1:1/v1/chat/completions"
_SSE = b"text/event-stream; charset=utf-8"


async def apply_early_faults(exchange: Exchange) -> None:
    """Apply the early faults of ``exchange``; return when an answer is to follow.

    Raises ``Broken`` when it was answered or broken here, ``Rejected`` for the fault ``status``.
    """
    faults = exchange.faults
    await asyncio.sleep(faults.number(FaultName.SLOW_HEADER) or 0)
    if status := faults.number(FaultName.STATUS):
        message = _message(int(status))
        raise Rejected(int(status), exchange.dialect.refusal(int(status), message), message)
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
        await respond(send, 200, PLAIN.refusal(500, _message(500)))
    else:
        return False
    return True


def _message(status: int) -> str:
    return f"A simulated failure of the backend ({status})."


async def read_body(receive: Any) -> bytes:
    """Read the request's body. Raises ``Rejection`` above 64 MiB, ``ConnectionError`` on a disconnect."""
    try:
        return await serving.read_body(receive)
    except BodyTooLarge:
        message = f"The body is larger than {MAX_BODY_BYTES} bytes."
        raise Rejection(413, ErrorObject(message, "invalid_request_error")) from None


CONTEXT_LENGTH = 131_072


class Simulator(Application):
    """The simulated model server."""

    def __init__(self, options: Options, log: RequestLog) -> None:
        super().__init__(options.api_key)
        self._options = options
        self._log = log
        self._started = int(time.time())
        self._cache = PrefixCache() if options.prefix_cache else None

    def refusal(self, status: int, message: str, kind: str) -> Rejection:
        return Rejection(status, ErrorObject(message, kind))

    async def route(self, scope: Any, receive: Any, send: Any) -> None:
        match scope["method"], scope["path"]:
            case "POST", "/v1/chat/completions":
                await self._chat(scope, receive, send)
            case "GET", "/v1/models":
                await respond(send, 200, self._models())
            case "GET", "/health":
                await respond(send, 200, {"status": "ok"})
            case "GET", "/sim/requests":
                await respond(send, 200, {"requests": list(self._log.entries)})
            case "DELETE", "/sim/requests":
                self._log.entries.clear()
                await respond(send, 204, b"")
            case _:
                raise self.refusal(404, "There is nothing here.", "not_found_error")

    def _models(self) -> dict[str, Any]:
        return {
            "object": "list",
            "data": [
                {
                    "id": name,
                    "object": "model",
                    "created": self._started,
                    "owned_by": "svc-simulator",
                    "root": name,
                    "parent": None,
                    "max_model_len": CONTEXT_LENGTH,
                }
                for name in self._options.models or (DEFAULT_MODEL,)
            ],
        }

    async def _chat(self, scope: Any, receive: Any, send: Any) -> None:
        fields = parse_object(await read_body(receive))
        entry = _entry(scope, fields)
        transport: asyncio.Transport = scope["state"]["transport"]
        answering = self._complete(entry, fields, send, transport)
        await until_disconnected(self.answer(entry, answering, send), transport, receive)

    def ended(self, entry: RequestEntry) -> None:
        self._log.append(entry)

    async def _complete(
        self, entry: RequestEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> None:
        exchange = self._exchange(entry, fields, send, transport)
        await apply_early_faults(exchange)
        answer = answer_streamed if exchange.body.stream else answer_whole
        await answer(exchange)

    def _exchange(
        self, entry: RequestEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> Exchange:
        body = parse_chat(fields)
        self._check_model(body)
        ask = read_ask(body)
        faults = self._options.faults if ask.directive.fault is None else ask.directive.fault
        dialect = parse_dialect(ask.directive.dialect or self._options.dialect)
        tokenizer = load(self._options.tokenizer)
        entry.fault = faults.text
        entry.prompt_tokens = count_prompt(tokenizer, fields["messages"], fields.get("tools"))
        return Exchange(
            entry=entry,
            created=int(time.time()),
            body=body,
            answer=compose(body, ask, tokenizer, _output_cap(body, dialect)),
            faults=faults,
            pace=Pace.of(ask.directive, self._options),
            dialect=dialect,
            running_usage=wants_running_usage(
                body, faults, dialect, offered=self._options.continuous_usage
            ),
            send=send,
            transport=transport,
            cached_tokens=self._cached_tokens(fields, entry.prompt_tokens),
        )

    def _cached_tokens(self, fields: dict[str, Any], prompt_tokens: int) -> int | None:
        if self._cache is None:
            return None
        known = self._cache.take(fields.get("cache_salt"), fields["messages"])
        if not known:
            return 0
        counted = count_prompt(load(self._options.tokenizer), known)
        # The last token is always computed.
        return min(counted, prompt_tokens - 1)

    def _check_model(self, body: ChatBody) -> None:
        if self._options.models and body.model not in self._options.models:
            message = f"The model {body.model!r} does not exist."
            raise Rejection(
                404, ErrorObject(message, "not_found_error", "model", "model_not_found")
            )


def _output_cap(body: ChatBody, dialect: Dialect) -> int | None:
    """Return the output cap in the first of the fields that the server reads."""
    given = {
        "max_completion_tokens": body.max_completion_tokens,
        "max_tokens": body.max_tokens,
    }
    return next((cap for name in dialect.output_caps if (cap := given[name])), None)


def _entry(scope: Any, fields: dict[str, Any]) -> RequestEntry:
    return RequestEntry(
        id=f"chatcmpl-{uuid7_hex()}",
        model=str(fields.get("model", "")),
        stream=fields.get("stream") is True,
        received_fields=sorted(fields),
        received_headers=header_names(scope),
        body=fields,
    )
