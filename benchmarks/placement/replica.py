"""A modelled model server over HTTP, in real time: ``python -m benchmarks.placement.replica --port N``.

Chats as from vLLM, with running usage and cached tokens; ``/health``, ``/v1/models`` and ``/metrics`` as
routers want them. ``POST /control`` with ``{"reset": true}`` empties the cache and the counters,
``{"slow": 2}`` halves its speed; it answers with ``Counters``. ``--scale`` stretches the model's time, for a
machine that is too slow for it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import msgspec
import uvloop

from benchmarks.payloads import STREAM_END
from benchmarks.placement.engine import TOKEN_BYTES, Blocks, Card, Engine, Running
from benchmarks.stub import content_length

_STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
_MODELS = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "bench"}]}


class Counters(msgspec.Struct):
    """What a replica counted since it was reset; ``most_at_once`` counts requests that wait, too."""

    requests: int
    prompt_tokens: int
    cached_tokens: int
    most_at_once: int


class Replica:
    """An engine, and the requests that it has now."""

    def __init__(self, clock: Callable[[], float], scale: float) -> None:
        self.engine = Engine(Card(), clock, scale)
        self.at_once = 0
        self.most_at_once = 0

    def control(self, wanted: dict[str, Any]) -> Counters:
        """Do what is ``wanted``, and return the counters as they are then."""
        engine = self.engine
        if wanted.get("reset"):
            engine.blocks = Blocks(engine.card.blocks)
            engine.requests = engine.prompt_tokens = engine.cached_tokens = self.most_at_once = 0
        if "slow" in wanted:
            engine.card = replace(engine.card, slow=float(wanted["slow"]))
        return Counters(
            engine.requests, engine.prompt_tokens, engine.cached_tokens, self.most_at_once
        )

    def metrics(self) -> bytes:
        """What routers read of a vLLM server."""
        engine = self.engine
        used = (engine.blocks.unnamed + len(engine.blocks.users)) / engine.blocks.size
        gauges = {
            "num_requests_running": len(engine.running),
            "num_requests_waiting": len(engine.waiting),
            "kv_cache_usage_perc": used,
            "gpu_cache_usage_perc": used,
        }
        return "".join(
            f'# TYPE vllm:{name} gauge\nvllm:{name}{{model_name="m"}} {value}\n'
            for name, value in gauges.items()
        ).encode()


class Connection(asyncio.Protocol):
    """One connection; one request at a time, as pooled clients send them."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._chat_task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._chat_task is not None:
            self._chat_task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, whole, body = self._received.partition(b"\r\n\r\n")
        if not whole or len(body) < content_length(head):
            return
        self._received = b""
        path = head.split(b" ", 2)[1]
        if path == b"/v1/chat/completions":
            self._chat_task = asyncio.ensure_future(self._chat(json.loads(body)))
        elif path == b"/control":
            self._send_json(self._replica.control(json.loads(body)))
        elif path == b"/v1/models":
            self._send_json(_MODELS)
        elif path == b"/metrics":
            self._send(b"200 OK", b"text/plain", self._replica.metrics())
        elif path == b"/health":
            self._send(b"200 OK", b"text/plain", b"")
        else:
            self._send(b"404 Not Found", b"text/plain", b"")

    async def _chat(self, body: dict[str, Any]) -> None:
        replica = self._replica
        replica.at_once += 1
        replica.most_at_once = max(replica.most_at_once, replica.at_once)
        running = replica.engine.submit(body)
        try:
            if body.get("stream"):
                await self._stream(running, body.get("stream_options") or {})
            else:
                while await running.progress.get() is not None:
                    pass
                self._send_json(_whole(running))
        finally:
            replica.at_once -= 1
            running.gone = True

    async def _stream(self, running: Running, options: dict[str, Any]) -> None:
        assert self._transport is not None
        text, sent = running.text(0, running.output), 0
        write = self._transport.write
        while (generated := await running.progress.get()) is not None:
            delta = {"content": text[sent * TOKEN_BYTES : generated * TOKEN_BYTES]}
            usage = _usage(running, generated) if options.get("continuous_usage_stats") else None
            frame = _frame([_choice(delta)], usage)
            if not sent:
                first = _frame([_choice({"role": "assistant", "content": ""})], usage)
                frame = _STREAM_HEAD + first + frame
            sent = generated
            write(frame)
        end = _frame([_choice({}, "stop")], None)
        if options.get("include_usage"):
            end += _frame([], _usage(running, sent))
        write(end + _chunk(b"data: [DONE]\n\n") + STREAM_END)

    def _send_json(self, answer: object) -> None:
        self._send(b"200 OK", b"application/json", msgspec.json.encode(answer))

    def _send(self, status: bytes, kind: bytes, body: bytes) -> None:
        assert self._transport is not None
        head = b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, kind, len(body)) + body)


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _usage(running: Running, generated: int) -> dict[str, Any]:
    return {
        "prompt_tokens": running.tokens,
        "total_tokens": running.tokens + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": {"cached_tokens": running.cached},
    }


def _answer(kind: str, choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    answer = {"id": "chatcmpl-bench", "object": kind, "created": 1_767_225_600, "model": "m"}
    return msgspec.json.encode({**answer, "choices": choices, "usage": usage})


def _frame(choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    return _chunk(b"data: " + _answer("chat.completion.chunk", choices, usage) + b"\n\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _whole(running: Running) -> msgspec.Raw:
    message = {"role": "assistant", "content": running.text(0, running.output)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return msgspec.Raw(_answer("chat.completion", [choice], _usage(running, running.generated)))


async def _serve(port: int, scale: float) -> None:
    loop = asyncio.get_running_loop()
    replica = Replica(loop.time, scale)
    await loop.create_server(lambda: Connection(replica), "127.0.0.1", port, backlog=1024)
    await replica.engine.run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    uvloop.run(_serve(given.port, given.scale))


if __name__ == "__main__":
    main()
