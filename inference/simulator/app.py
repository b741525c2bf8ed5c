"""The routes of the simulator, as a plain ASGI application."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Coroutine
from typing import Any

import msgspec

from inference.simulator.answers import compose, read_ask
from inference.simulator.dialect_stream import answer_dialect_streamed
from inference.simulator.dialect_whole import answer_dialect_whole
from inference.simulator.dialects.habits import Dialect
from inference.simulator.dialects.known import parse_dialect
from inference.simulator.early import strike_early
from inference.simulator.exchange import Exchange, Pace, wants_running_usage
from inference.simulator.fast import answer_fast
from inference.simulator.faults import NOT_IN_DIALECTS
from inference.simulator.options import DEFAULT_MODEL, Options
from inference.simulator.requests_log import RequestEntry, RequestLog
from inference.simulator.responses import read_body, refuse
from inference.simulator.stream import answer_streamed
from inference.simulator.whole import answer_whole
from inference.simulator.wire import (
    ChatBody,
    ErrorObject,
    Refusal,
    bad_request,
    parse_chat,
    parse_object,
)
from inference.tokenizers import count_prompt, load
from svc_project.lib.ids import uuid7_hex
from svc_project.lib.simulation import Broken, hung_up, respond, until_hung_up

CONTEXT_LENGTH = 131_072


class Simulator:
    """The ASGI application. ``scope["state"]["transport"]`` must be the connection under it."""

    def __init__(self, options: Options, log: RequestLog) -> None:
        self._options = options
        self._log = log
        self._started = int(time.time())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._route(scope, receive, send)
        except Refusal as refusal:
            await refuse(send, refusal)
        except ConnectionError:
            return  # nobody is left to answer

    async def _route(self, scope: Any, receive: Any, send: Any) -> None:
        path: str = scope["path"]
        if path.startswith("/v1/"):
            self._check_key(scope)
        match scope["method"], path:
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
                raise Refusal(404, ErrorObject("There is nothing here.", "not_found_error"))

    def _check_key(self, scope: Any) -> None:
        key = self._options.api_key
        if key is None:
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, b"Bearer " + key.encode()):
            raise Refusal(401, ErrorObject("The API key is wrong.", "authentication_error"))

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
        if self._options.fast:
            try:
                await answer_fast(self._options, receive, send)
            except msgspec.DecodeError:
                raise Refusal(400, ErrorObject("Bad body.", "invalid_request_error")) from None
            return
        fields = parse_object(await read_body(receive))
        entry = _entry(scope, fields)
        transport: asyncio.Transport = scope["state"]["transport"]
        answering = self._answer(entry, fields, send, transport)
        if await until_hung_up(answering, receive) and transport.is_closing():
            # The server must learn of it before this returns, or it takes a cut for a mistake.
            await hung_up(receive)

    async def _answer(
        self, entry: RequestEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> None:
        """Answers one request, whatever is wrong with it, and notes how that ended."""
        try:
            exchange = self._exchange(entry, fields, send, transport)
            await strike_early(exchange)
            await _answering(exchange)
        except Refusal as refusal:
            entry.status = refusal.status
            await refuse(send, refusal)
        except Broken:
            return
        except asyncio.CancelledError:
            entry.aborted = True
            raise
        finally:
            self._log.append(entry)

    def _exchange(
        self, entry: RequestEntry, fields: dict[str, Any], send: Any, transport: asyncio.Transport
    ) -> Exchange:
        body = parse_chat(fields)
        self._check_model(body)
        ask = read_ask(body)
        faults = self._options.faults if ask.directive.fault is None else ask.directive.fault
        dialect = parse_dialect(ask.directive.dialect or self._options.dialect)
        if dialect is not None and (
            unknown := [name for name in NOT_IN_DIALECTS if name in faults]
        ):
            raise bad_request(f"No dialect has the fault {unknown[0]}.")
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
        )

    def _check_model(self, body: ChatBody) -> None:
        if self._options.models and body.model not in self._options.models:
            message = f"The model {body.model!r} does not exist."
            raise Refusal(404, ErrorObject(message, "not_found_error", "model", "model_not_found"))


def _answering(exchange: Exchange) -> Coroutine[Any, Any, None]:
    streamed, dialect = exchange.body.stream, exchange.dialect
    if dialect is None:
        return answer_streamed(exchange) if streamed else answer_whole(exchange)
    if streamed:
        return answer_dialect_streamed(exchange, dialect)
    return answer_dialect_whole(exchange, dialect)


def _output_cap(body: ChatBody, dialect: Dialect | None) -> int | None:
    """The cap under the first of the names that the server reads."""
    if dialect is None:
        return body.max_completion_tokens or body.max_tokens
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
        received_headers=sorted({name.decode("latin-1") for name, _ in scope["headers"]}),
        body=fields,
    )
