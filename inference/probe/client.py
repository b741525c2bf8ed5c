"""HTTP requests of a probe, each bounded in time and in bytes."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import msgspec

from core.asgi.sse import DONE, EventReader, FrameTooLarge
from core.backends.outbound import open_client, request_head
from core.http_client import request as errors
from core.http_client.response import Response
from inference.backends.reasons import reason_in, secrets_in, without_secrets
from inference.probe.replies import Streamed, Whole, chunk_error, one_line, whole_of

LARGEST_ANSWER: Final = 4 * 1024 * 1024
"""Bytes; the list of models of a hosted API is the longest."""
_LARGEST_EVENT: Final = 1024 * 1024
_LARGEST_ERROR: Final = 64 * 1024
_GLANCE_SECONDS: Final = 10.0
"""Timeout of requests that need no loaded model."""


class ProbeError(Exception):
    """A request got no usable answer; the message tells an operator why."""


class Closed(ProbeError):
    """The connection ended before an answer began."""

    def __init__(self) -> None:
        super().__init__("it closed the connection without an answer")


class ErrorStatus(ProbeError):
    """The server answered ``status``; ``words`` are its own message, on one line, or empty."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"it answers {status}" + (f": {words}" if words else ""))
        self.status = status
        self.words = words

    @property
    def is_about_the_key(self) -> bool:
        """Whether the server requires a key, or another one."""
        return self.status in (401, 403)

    @property
    def is_about_the_request(self) -> bool:
        """Whether a different request might be accepted."""
        return 400 <= self.status < 500 and self.status not in (401, 403, 404, 408, 429)


@dataclass(frozen=True)
class Target:
    """The server to probe, and what is added to each request.

    ``seconds``: the timeout of an answer by the model, including its loading.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    has_key: bool = False
    seconds: float = 60.0

    @property
    def root(self) -> str:
        """The address without ``/v1``, where servers have their own endpoints."""
        return self.base_url.removesuffix("/v1")


class ProbeClient:
    """Sends a probe's requests, each over a new connection unless ``kept`` is set."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._secrets = secrets_in(target.headers)
        self._client = open_client()

    async def __aenter__(self) -> ProbeClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.close()

    async def get(self, address: str) -> Any:
        """Get the JSON at ``address``. Raises ``ProbeError``."""
        seconds = min(_GLANCE_SECONDS, self.target.seconds)
        async with self._exchange("GET", address, None, seconds) as response:
            return await _json(response)

    async def post(self, address: str, body: Mapping[str, Any]) -> Any:
        """Post ``body`` and return the JSON answer. Raises ``ProbeError``."""
        seconds = min(_GLANCE_SECONDS, self.target.seconds)
        async with self._exchange("POST", address, body, seconds) as response:
            return await _json(response)

    async def whole(self, body: Mapping[str, Any], *, kept: bool = False) -> Whole:
        """Send a chat request and return its whole answer. Raises ``ProbeError``."""
        began = time.monotonic()
        async with self._chat(body, kept=kept) as response:
            answer = await _json(response)
        whole = whole_of(answer)
        if whole is None:
            raise ProbeError("its answer has no choices, as chat completions have them")
        whole.seconds = time.monotonic() - began
        whole.reused = response.reused
        whole.said_close = "close" in response.header(b"connection").lower()
        return whole

    async def stream(
        self, body: Mapping[str, Any], *, most_pieces: int = 4096, kept: bool = False
    ) -> Streamed:
        """Stream an answer; disconnect after ``most_pieces`` pieces of text. Raises ``ProbeError``."""
        streamed = Streamed()
        reader = EventReader(_LARGEST_EVENT)
        body = {**body, "stream": True}
        async with self._chat(body, kept=kept) as response:
            kind = _media_type(response)
            if kind != "text/event-stream":
                raise ProbeError(f"a stream was asked for, and it sends {one_line(kind)}")
            async for read in _pieces(response):
                for event in _events(reader, read):
                    streamed.add(_chunk(event, self._secrets))
                if streamed.pieces >= most_pieces:
                    streamed.disconnected = True
                    return streamed
                if streamed.done:
                    break
            if not streamed.done and (rest := reader.rest()) is not None:
                streamed.add(_chunk(rest, self._secrets))
            if kept:
                # The connection can be reused only after the answer was read to its end.
                async for _ in _pieces(response):
                    pass
        if not streamed.chunks:
            raise ProbeError("its stream has no events")
        return streamed

    @asynccontextmanager
    async def _chat(self, body: Mapping[str, Any], *, kept: bool) -> AsyncIterator[Response]:
        address = f"{self.target.base_url}/chat/completions"
        content = {**body, **self.target.extra_fields}
        seconds = self.target.seconds
        async with self._exchange("POST", address, content, seconds, kept=kept) as response:
            yield response

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        address: str,
        body: Mapping[str, Any] | None,
        seconds: float,
        *,
        kept: bool = False,
    ) -> AsyncIterator[Response]:
        """Send a request and yield a successful answer, to be read within ``seconds`` in all.

        Raises ``ProbeError``.
        """
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with asyncio.timeout(seconds):
                request = request_head(method, address, self.target.headers)
                response = await self._client.send(request, content, fresh=not kept)
                try:
                    await _require_success(response, self._secrets)
                    yield response
                except BaseException:
                    response.close()
                    raise
                if kept:
                    response.release()
                else:
                    response.close()
        except TimeoutError:
            raise ProbeError(f"no answer within {seconds:g} s") from None
        except (errors.ServerDisconnected, errors.WriteError):
            raise Closed from None
        except (errors.HttpError, ValueError) as error:
            raise ProbeError(_reason(error)) from None


async def _require_success(response: Response, secrets: Collection[str]) -> None:
    status = response.status
    if 300 <= status < 400:
        place = one_line(without_secrets(response.header(b"location"), secrets))
        raise ProbeError(f"it redirects to {place or 'another address'}; give the address itself")
    if status != 200:
        body = bytearray()
        try:
            while len(body) <= _LARGEST_ERROR and (read := await response.read()):
                body += read
        except errors.HttpError:
            pass
        raise ErrorStatus(status, reason_in(bytes(body[:_LARGEST_ERROR]), secrets=secrets) or "")
    if response.is_encoded:
        raise ProbeError("it compresses its answers though it is asked not to")


async def _pieces(response: Response) -> AsyncIterator[bytes]:
    """Yield the body as it arrives. Raises ``ProbeError`` when it is too large."""
    size = 0
    while read := await response.read():
        size += len(read)
        if size > LARGEST_ANSWER:
            raise ProbeError(f"its answer is longer than {LARGEST_ANSWER // 2**20} MiB")
        yield read


async def _json(response: Response) -> Any:
    body = b"".join([read async for read in _pieces(response)])
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        kind = one_line(_media_type(response))
        raise ProbeError(f"its answer is no JSON (it is called {kind})") from None


def _media_type(response: Response) -> str:
    """Return the media type without its parameters; a missing one is no type that is read here."""
    kind = response.header(b"content-type").partition(";")[0].strip().lower()
    return kind or "application/octet-stream"


def _events(reader: EventReader, read: bytes) -> list[bytes]:
    try:
        return reader.feed(read)
    except FrameTooLarge:
        raise ProbeError("an event of its stream is longer than 1 MiB") from None


def _chunk(event: bytes, secrets: Collection[str]) -> Any:
    """Parse the chunk of an event; None for ``[DONE]``. Raises ``ProbeError``."""
    if event.strip() == DONE:
        return None
    try:
        chunk = msgspec.json.decode(event)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ProbeError("an event of its stream is no JSON") from None
    if not isinstance(chunk, dict):
        raise ProbeError("an event of its stream is no JSON object")
    if chunk_error(chunk):
        said = reason_in(event, secrets=secrets) or "without words"
        raise ProbeError(f"its stream holds an error: {said}")
    return chunk


def _reason(error: Exception) -> str:
    """Describe why an exchange failed."""
    if isinstance(error, errors.ConnectError):
        if error.obstacle is errors.Obstacle.TLS:
            return f"no TLS connection: {one_line(str(error.cause))}"
        if error.obstacle is errors.Obstacle.UNKNOWN_NAME:
            return "its name is not known (DNS)"
        if error.obstacle is errors.Obstacle.TIMED_OUT:
            return "cannot connect: no answer"
        return f"cannot connect: {_system_words(error.cause)}"
    if isinstance(error, errors.ReadError):
        return "its answer broke off"
    return f"it does not speak HTTP as it should ({type(error).__name__})"


def _system_words(error: Exception | None) -> str:
    """Return the system's text for ``error``, or the gateway's own for a refused address (EACCES)."""
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number in errno.errorcode and number != errno.EACCES:
        return os.strerror(number)
    words = error.strerror if isinstance(error, OSError) else None
    return one_line(words or type(error).__name__)
