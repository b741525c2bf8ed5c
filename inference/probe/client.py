"""HTTP requests of a probe, each bounded in time and in bytes."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import aiohttp
import msgspec
from yarl import URL

from inference.connections import is_lost, not_connected
from inference.probe.replies import Streamed, Whole, chunk_error, one_line, whole_of
from inference.reasons import reason_in
from svc_project.lib.outbound import is_reused, open_session
from svc_project.lib.sse import DONE, EventReader, FrameTooLarge

LARGEST_ANSWER: Final = 4 * 1024 * 1024
"""Bytes; the list of models of a hosted API is the longest."""
_LARGEST_EVENT: Final = 1024 * 1024
_LARGEST_ERROR: Final = 64 * 1024
_GLANCE_SECONDS: Final = 10.0
"""For what needs no model to be loaded."""


class NoAnswer(Exception):
    """A request got no answer of use; the message says why, in words for an operator."""


class Closed(NoAnswer):
    """The connection ended before an answer began."""

    def __init__(self) -> None:
        super().__init__("it closed the connection without an answer")


class Refused(NoAnswer):
    """The server answered ``status``; ``words`` are its own, on one line, or empty."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(f"it answers {status}" + (f": {words}" if words else ""))
        self.status = status
        self.words = words

    @property
    def is_about_the_key(self) -> bool:
        """Whether the server wants a key, or another one."""
        return self.status in (401, 403)

    @property
    def is_about_the_request(self) -> bool:
        """Whether another request could fare better."""
        return 400 <= self.status < 500 and self.status not in (401, 403, 404, 408, 429)


@dataclass(frozen=True)
class Target:
    """The server that is asked, and what goes with each request.

    ``seconds``: for an answer of the model, loading it included.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    has_key: bool = False
    seconds: float = 60.0

    @property
    def root(self) -> str:
        """The address without ``/v1``, where servers have what is their own."""
        return self.base_url.removesuffix("/v1")


class ProbeClient:
    """Sends a probe's requests, each over a new connection unless ``kept`` is asked for."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._single = open_session(keep_alive=False)
        self._kept = open_session()

    async def __aenter__(self) -> ProbeClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._single.close()
        await self._kept.close()

    async def get(self, address: str) -> Any:
        """The JSON at ``address``. Raises ``NoAnswer``."""
        seconds = min(_GLANCE_SECONDS, self.target.seconds)
        async with self._exchange("GET", address, None, seconds) as response:
            return await _json(response)

    async def post(self, address: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers ``body``. Raises ``NoAnswer``."""
        seconds = min(_GLANCE_SECONDS, self.target.seconds)
        async with self._exchange("POST", address, body, seconds) as response:
            return await _json(response)

    async def whole(self, body: Mapping[str, Any], *, kept: bool = False) -> Whole:
        """The whole answer to a chat request. Raises ``NoAnswer``."""
        began = time.monotonic()
        async with self._chat(body, kept=kept) as response:
            reused = is_reused()
            answer = await _json(response)
            said_close = "close" in response.headers.get("Connection", "").lower()
        whole = whole_of(answer)
        if whole is None:
            raise NoAnswer("its answer has no choices, as chat completions have them")
        whole.seconds = time.monotonic() - began
        whole.reused, whole.said_close = reused, said_close
        return whole

    async def stream(
        self, body: Mapping[str, Any], *, most_pieces: int = 4096, kept: bool = False
    ) -> Streamed:
        """A streamed answer, hung up after ``most_pieces`` pieces of text. Raises ``NoAnswer``."""
        streamed = Streamed()
        reader = EventReader(_LARGEST_EVENT)
        body = {**body, "stream": True}
        async with self._chat(body, kept=kept) as response:
            kind = response.content_type
            if kind != "text/event-stream":
                raise NoAnswer(f"a stream was asked for, and it sends {one_line(kind)}")
            async for read in _pieces(response):
                for event in _events(reader, read):
                    streamed.add(_chunk(event))
                if streamed.pieces >= most_pieces:
                    streamed.hung_up = True
                    return streamed
                if streamed.done:
                    break
            if not streamed.done and (rest := reader.rest()) is not None:
                streamed.add(_chunk(rest))
            if kept:
                # The connection can be used again only when the answer has been read to its end.
                async for _ in _pieces(response):
                    pass
        if not streamed.chunks:
            raise NoAnswer("its stream has no events")
        return streamed

    @asynccontextmanager
    async def _chat(
        self, body: Mapping[str, Any], *, kept: bool
    ) -> AsyncIterator[aiohttp.ClientResponse]:
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
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A successful answer, to be read within ``seconds``. Raises ``NoAnswer``."""
        session = self._kept if kept else self._single
        content = None if body is None else msgspec.json.encode(body)
        try:
            async with asyncio.timeout(seconds):
                response = await session.request(
                    method,
                    URL(address),
                    data=content,
                    headers=dict(self.target.headers),
                    allow_redirects=False,
                )
                try:
                    await _require_success(response)
                    yield response
                except BaseException:
                    response.close()
                    raise
                if kept:
                    response.release()
                else:
                    response.close()
        except TimeoutError:
            raise NoAnswer(f"no answer within {seconds:g} s") from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            if is_lost(error) and not not_connected(error):
                raise Closed from None
            raise NoAnswer(_reason(error)) from None


async def _require_success(response: aiohttp.ClientResponse) -> None:
    status = response.status
    if 300 <= status < 400:
        place = one_line(response.headers.get("Location", ""))
        raise NoAnswer(f"it redirects to {place or 'another address'}; give the address itself")
    if status != 200:
        body = bytearray()
        try:
            async for read in response.content.iter_any():
                body += read
                if len(body) > _LARGEST_ERROR:
                    break
        except aiohttp.ClientError:
            pass
        raise Refused(status, reason_in(bytes(body[:_LARGEST_ERROR]), "\0") or "")
    if "Content-Encoding" in response.headers:
        raise NoAnswer("it compresses its answers though it is asked not to")


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """What comes of the body. Raises ``NoAnswer`` when it is too large."""
    size = 0
    async for read in response.content.iter_any():
        size += len(read)
        if size > LARGEST_ANSWER:
            raise NoAnswer(f"its answer is longer than {LARGEST_ANSWER // 2**20} MiB")
        yield read


async def _json(response: aiohttp.ClientResponse) -> Any:
    body = b"".join([read async for read in _pieces(response)])
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        kind = one_line(response.content_type)
        raise NoAnswer(f"its answer is no JSON (it is called {kind})") from None


def _events(reader: EventReader, read: bytes) -> list[bytes]:
    try:
        return reader.feed(read)
    except FrameTooLarge:
        raise NoAnswer("an event of its stream is longer than 1 MiB") from None


def _chunk(event: bytes) -> Any:
    """The chunk of an event, or None for ``[DONE]``. Raises ``NoAnswer``."""
    if event.strip() == DONE:
        return None
    try:
        chunk = msgspec.json.decode(event)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NoAnswer("an event of its stream is no JSON") from None
    if not isinstance(chunk, dict):
        raise NoAnswer("an event of its stream is no JSON object")
    if chunk_error(chunk):
        raise NoAnswer(f"its stream holds an error: {reason_in(event, chr(0)) or 'without words'}")
    return chunk


def _reason(error: Exception) -> str:
    """Why an exchange failed, in words."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return f"no TLS connection: {one_line(str(error.__cause__ or type(error).__name__))}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not known (DNS)"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {_system_words(error.os_error)}"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "cannot connect: no answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer broke off"
    return f"it does not speak HTTP as it should ({type(error).__name__})"


def _system_words(error: OSError) -> str:
    """What the system calls ``error``; an address that the gateway refuses has words of its own."""
    if error.errno is not None and error.errno in errno.errorcode and error.errno != errno.EACCES:
        return os.strerror(error.errno)
    return one_line(error.strerror or type(error).__name__)
