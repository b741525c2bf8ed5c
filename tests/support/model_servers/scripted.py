"""A model server that sends, byte by byte, the script of a test.

For answers that no real server gives on purpose and that would be one more fault for the simulator
to support. Its log has the simulator's fields, so that the oracle can read both.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.support.live import free_port
from tests.support.servers.tcp_proxy import End, end_connection

PROMPT_TOKENS = 7
WORDS = ["One", " two", " three", " four"]
TOKENS = len(WORDS)
"""The tokens of an answer: one for each word."""


@dataclass(frozen=True)
class Pause:
    """A pause before the next step; a disconnect meanwhile ends the script."""

    seconds: float


@dataclass(frozen=True)
class Quotation:
    """A refusal with ``status`` that quotes the headers of the request in its message."""

    status: int = 400

    def of(self, headers: dict[str, str]) -> bytes:
        message = f"Refused the headers {json.dumps(headers)}"
        return body(json.dumps({"error": {"message": message}}).encode(), self.status)


Step = bytes | Pause | Quotation | End


@dataclass(frozen=True)
class Script:
    """The steps of an answer. ``produced``: the number of generated tokens."""

    steps: Sequence[Step]
    produced: int = 0


def usage(completion: object = TOKENS, prompt: object = PROMPT_TOKENS) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": 0}


def head(status: int = 200, kind: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"content-type: {kind}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def body(content: bytes, status: int = 200, kind: str = "application/json", *headers: str) -> bytes:
    """A whole answer."""
    return head(status, kind, f"content-length: {len(content)}", *headers) + content


def completion(**members: Any) -> bytes:
    """The JSON of a good whole answer, except for ``members``."""
    message = {"role": "assistant", "content": "".join(WORDS)}
    return json.dumps(
        {
            "id": "x",
            "object": "chat.completion",
            "created": 1,
            "model": "name-on-the-backend",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage(),
            **members,
        }
    ).encode()


def chunk(delta: dict[str, Any] | None, **members: Any) -> dict[str, Any]:
    """One chunk of a stream; without a delta it has no choices."""
    finish = members.pop("finish_reason", None)
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "choices": choices, **members}


def frames(*chunks: dict[str, Any] | str, line_end: str = "\n") -> list[bytes]:
    """Each chunk as an event; a text stands for itself."""
    payloads = [each if isinstance(each, str) else json.dumps(each) for each in chunks]
    return [f"data: {payload}{line_end}{line_end}".encode() for payload in payloads]


ROLE = chunk({"role": "assistant", "content": ""})
CONTENT = [chunk({"content": word}) for word in WORDS]
FINISH = chunk({}, finish_reason="stop")
USAGE = chunk(None, usage=usage())
DONE = "[DONE]"
GOOD: list[dict[str, Any] | str] = [ROLE, *CONTENT, FINISH, USAGE, DONE]
STREAM_HEAD = head(200, "text/event-stream", "connection: close")
CHUNKED_HEAD = head(200, "text/event-stream", "transfer-encoding: chunked")


def stream(*chunks: dict[str, Any] | str, line_end: str = "\n") -> list[Step]:
    """A streamed answer, a write for each event; it ends with the connection."""
    return [STREAM_HEAD, *frames(*chunks, line_end=line_end), End.FIN]


def chunked(content: bytes) -> bytes:
    """``content`` as one chunk of HTTP's chunked coding, as real servers send a stream."""
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


class ScriptedServer:
    """Answers every chat request with the script ``streamed`` or ``whole``, by its ``stream``."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streamed = self.whole = Script([])
        self.heal()
        self._log: list[dict[str, Any]] = []
        self.connections = 0
        """How many connections it has accepted."""
        self.running = self.most_running = 0
        """Requests whose answer is not complete: now, and at most."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def say(self, streamed: Script, whole: Script) -> None:
        self.streamed, self.whole = streamed, whole

    def heal(self) -> None:
        """Give good answers."""
        self.say(Script(stream(*GOOD), TOKENS), Script([body(completion())], TOKENS))

    def requests(self) -> list[dict[str, Any]]:
        """The requests and their outcomes, in the form of the simulator's log."""
        return list(self._log)

    def requests_of(self, marker: str) -> list[dict[str, Any]]:
        """The entries of one request: more than one after a retry."""
        return [each for each in self._log if marker in json.dumps(each["body"])]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await self._answer_one(reader, writer):
                    pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.partition(": ") for line in lines[1:] if line]
        headers = {name.lower(): value for name, _, value in pairs}
        request = json.loads(await reader.readexactly(int(headers["content-length"])))
        script = self.streamed if request.get("stream") else self.whole
        self._log.append(
            {
                "headers": headers,
                "body": request,
                "prompt_tokens": PROMPT_TOKENS,
                "produced_tokens": script.produced,
            }
        )
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        rest = list(script.steps)
        try:
            while rest:
                step = rest.pop(0)
                if not any(type(each) is bytes for each in rest):
                    # Whoever has read the last bytes may send the next request at once.
                    break
                if not await self._do(step, headers, reader, writer):
                    return False
        finally:
            self.running -= 1
        for each in [step, *rest]:
            if not await self._do(each, headers, reader, writer):
                return False
        return True

    async def _do(
        self,
        step: Step,
        headers: dict[str, str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Do one step; returns whether the connection goes on."""
        if isinstance(step, Pause):
            with suppress(TimeoutError):
                if not await asyncio.wait_for(reader.read(1), step.seconds):
                    return False
            return True
        if isinstance(step, End):
            end_connection(writer, step)
            return False
        writer.write(step if isinstance(step, bytes) else step.of(headers))
        await writer.drain()
        return True


@contextmanager
def scripted_server() -> Iterator[ScriptedServer]:
    """Run a scripted server on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = ScriptedServer(free_port())

    async def begin() -> asyncio.Server:
        return await asyncio.start_server(server.serve, "127.0.0.1", server.port)

    async def end(listening: asyncio.Server) -> None:
        listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # lets the loop remove closed connections

    listening = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(end(listening), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
