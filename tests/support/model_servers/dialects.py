"""Small model servers, each with the habits of a real one, as far as a probe can see them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

LONG = 60
"""Words of an answer that nothing cuts."""


@dataclass(frozen=True)
class Dialect:
    """What a server does its own way.

    ``obeyed``: names of the output cap; ``refused``: fields that it answers with 400, also those of
    ``stream_options``; ``choices``: the forms of ``tool_choice`` that make it call,
    ``refused_choices`` those that it answers with 400; ``elsewhere``: answers by path.
    """

    models: Sequence[Mapping[str, Any]] = ({"id": "demo"},)
    obeyed: frozenset[str] = frozenset({"max_tokens", "max_completion_tokens"})
    refused: frozenset[str] = frozenset()
    running: str = ""
    choices: frozenset[str] = frozenset({"named", "required", "auto"})
    refused_choices: frozenset[str] = frozenset()
    fits_schema: bool = True
    usage_on_streams: bool = True
    says_done: bool = True
    key: str = ""
    header: str = ""
    quotes_headers: bool = False
    """Whether chats are refused with the headers of the request in the message."""
    elsewhere: Mapping[str, Any] = field(default_factory=dict)
    unknown_is_200: bool = False
    api: str = "/v1"
    word_seconds: float = 0.0
    chats: Sequence[str] | None = None
    """The models that can chat; None: all."""
    dies_of: str = ""
    """What a request holds after which all others are answered 503."""
    fails_on: str = ""
    """What a request holds that is answered 500."""


VLLM = Dialect(
    models=[{"id": "/models/qwen", "owned_by": "vllm", "max_model_len": 4096}], running="vllm"
)
VLLM_WITHOUT_PARSER = Dialect(running="vllm", refused_choices=frozenset({"auto"}))
OLLAMA = Dialect(
    models=[{"id": "llama3.2:latest", "owned_by": "library"}],
    obeyed=frozenset({"max_tokens"}),
    elsewhere={
        "GET /api/ps": {"models": [{"name": "llama3.2:latest", "context_length": 8192}]},
        "POST /api/show": {
            "parameters": "num_ctx 2048",
            "model_info": {"x.context_length": 131072},
        },
    },
)
TRANSFORMERS = Dialect(choices=frozenset(), fits_schema=False, says_done=False)
LM_STUDIO = Dialect(
    models=[{"id": "qwen/qwen3-4b"}],
    refused_choices=frozenset({"named"}),
    elsewhere={"GET /api/v0/models/qwen/qwen3-4b": {"loaded_context_length": 16384}},
    unknown_is_200=True,
)
REASONING = Dialect(
    refused=frozenset({"max_tokens"}), models=[{"id": "o9", "context_length": 200_000}]
)
LITE_LLM = Dialect(
    elsewhere={
        "GET /model/info": {
            "data": [
                {"model_name": "demo", "model_info": {"max_input_tokens": 32_000}},
                {"model_name": "demo", "model_info": {"max_input_tokens": 16_000}},
            ]
        }
    }
)


class DialectServer:
    """A running server of one dialect; ``bodies`` are the chat requests that came."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.root = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        dialect, path = self.dialect, f"{request.method} {request.path}"
        self.paths.append(path)
        if dialect.key and request.headers.get("Authorization") != f"Bearer {dialect.key}":
            return _error(401, "Incorrect API key provided")
        if dialect.header and dialect.header not in request.headers:
            return _error(400, f"{dialect.header} is missing")
        if path == f"GET {dialect.api}/models":
            return web.json_response({"object": "list", "data": list(dialect.models)})
        if path == f"POST {dialect.api}/chat/completions" and dialect.quotes_headers:
            return _error(400, f"Refused the headers {dict(request.headers)}")
        if path == f"POST {dialect.api}/chat/completions":
            return await self._chat(request)
        if path in dialect.elsewhere:
            return web.json_response(dialect.elsewhere[path])
        if dialect.unknown_is_200:
            return web.json_response({"error": f"Unexpected endpoint or method. ({path})"})
        return _error(404, "Not Found")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if not body.get("model"):
            return _error(422, "model: Field required")
        dialect = self.dialect
        if dialect.dies_of and any(dialect.dies_of in json.dumps(each) for each in self.bodies):
            return _error(503, "The model is gone")
        self.bodies.append(body)
        if dialect.fails_on and dialect.fails_on in json.dumps(body):
            return _error(500, "The server failed")
        if dialect.chats is not None and body["model"] not in dialect.chats:
            return _error(400, f"{body['model']} does not support chat")
        for name in dialect.refused & {*body, *(body.get("stream_options") or {})}:
            return _error(400, f"Unsupported parameter: '{name}'")
        choice = body.get("tool_choice")
        form = "named" if isinstance(choice, dict) else choice
        if form in dialect.refused_choices:
            return _error(400, f"tool_choice {form} is not supported")
        calls = form is not None and form in dialect.choices
        words = self._words(body)
        cap = min([body[name] for name in dialect.obeyed if name in body], default=LONG)
        cut = len(words) > cap and not calls and "response_format" not in body
        words = words[:cap] if cut else words
        if body.get("stream"):
            return await self._stream(request, body, words, "length" if cut else "stop")
        message: dict[str, Any] = {"role": "assistant", "content": "".join(words)}
        if calls:
            call = {"name": "set_lamp", "arguments": '{"lamp_is_on": true}'}
            message["tool_calls"] = [{"id": "c", "type": "function", "function": call}]
        reason = "tool_calls" if calls else "length" if cut else "stop"
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        usage = {"prompt_tokens": 7, "completion_tokens": len(words)}
        return web.json_response({"choices": choices, "usage": usage})

    def _words(self, body: dict[str, Any]) -> list[str]:
        if "response_format" in body and self.dialect.fits_schema:
            return ['{"lamp_is_on": ', "false}"]
        return [f" {number}" for number in range(LONG)]

    async def _stream(
        self, request: web.Request, body: dict[str, Any], words: list[str], reason: str
    ) -> web.StreamResponse:
        asked = body.get("stream_options") or {}
        running = asked.get("continuous_usage_stats") and self.dialect.running == "vllm"
        timed = body.get("timings_per_token") and self.dialect.running == "llama.cpp"
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, word in enumerate(words, 1):
            chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": word}}]}
            if running:
                chunk["usage"] = {"prompt_tokens": 7, "completion_tokens": number}
            if timed:
                chunk["timings"] = {"cache_n": 0, "prompt_n": 7, "predicted_n": number}
            try:
                await response.write(_event(chunk))
            except ConnectionError:
                break  # the probe has hung up
            await asyncio.sleep(self.dialect.word_seconds)
        else:
            await self._end(response, asked, words, reason)
        return response

    async def _end(
        self, response: web.StreamResponse, asked: dict[str, Any], words: list[str], reason: str
    ) -> None:
        await response.write(
            _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        )
        if asked.get("include_usage") and self.dialect.usage_on_streams:
            usage = {"prompt_tokens": 7, "completion_tokens": len(words)}
            await response.write(_event({"choices": [], "usage": usage}))
        if self.dialect.says_done:
            await response.write(b"data: [DONE]\n\n")


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)


@asynccontextmanager
async def serving(dialect: Dialect) -> AsyncIterator[DialectServer]:
    """A running server of ``dialect`` on loopback."""
    server = DialectServer(dialect)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.root = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def saying(answer: bytes, *, endless: bytes = b"") -> AsyncIterator[str]:
    """The address of a server that says ``answer`` to whatever it reads, then ``endless`` for
    ever. With neither it is silent."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            while endless:
                writer.write(endless)
                await writer.drain()
            await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listening.close()


@contextmanager
def running(dialect: Dialect) -> Iterator[DialectServer]:
    """A server of ``dialect`` on a thread of its own, for code that runs its own event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stack = AsyncExitStack()

    async def begin() -> DialectServer:
        return await stack.enter_async_context(serving(dialect))

    try:
        yield asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
