"""Chats and streams at a steady rate through one address, and what became of each."""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx2

from tests.support.live import NO_TLS

MODEL = "acme/demo-8b"
CHATS_A_SECOND = 6.0
STREAMS_A_SECOND = 1.0
STREAM_SECONDS = 8.0
_TOKENS_A_SECOND = 5


@dataclass
class Sent:
    """What clients saw of a load."""

    chats: int = 0
    streams: int = 0
    failed: list[str] = field(default_factory=list)
    """Requests that got anything but 200, or no answer."""
    cut: list[str] = field(default_factory=list)
    """Streams that began and did not end with [DONE]."""
    longest: float = 0.0
    """Seconds that the slowest chat took."""
    longest_at: str = ""
    """When that was sent (UTC), to be found in the logs of gateways."""
    answered: set[str] = field(default_factory=set)
    """The request ids of all that began to be answered with 200."""

    @property
    def total(self) -> int:
        return self.chats + self.streams

    def __str__(self) -> str:
        return (
            f"{self.chats} chats and {self.streams} streams: {len(self.failed)} failed, "
            f"{len(self.cut)} cut, longest chat {self.longest:.2f} s (sent {self.longest_at})"
        )


class Load:
    """Runs in a thread while it is entered; ``sent`` is whole after that."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        verify: ssl.SSLContext | bool = NO_TLS,
        streams_a_second: float = STREAMS_A_SECOND,
        stream_seconds: Sequence[float] = (STREAM_SECONDS,),
    ) -> None:
        """``stream_seconds`` are how long streams take, one after the other, from the beginning again."""
        self._url, self._verify = url, verify
        self._streams_a_second = streams_a_second
        self._stream_seconds = itertools.cycle(stream_seconds)
        self._headers = {"authorization": f"Bearer {key}"}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.sent = Sent()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        limits = httpx2.Limits(max_connections=400, keepalive_expiry=20)
        async with httpx2.AsyncClient(
            base_url=self._url,
            headers=self._headers,
            timeout=90,
            verify=self._verify,
            limits=limits,
        ) as client:
            running: set[asyncio.Task[None]] = set()
            began, started = time.monotonic(), 0
            rate = CHATS_A_SECOND + self._streams_a_second
            share = self._streams_a_second / rate
            while not self._stop.is_set():
                streams = int((started + 1) * share) > int(started * share)
                task = asyncio.create_task(self._stream(client) if streams else self._chat(client))
                running.add(task)
                task.add_done_callback(running.discard)
                started += 1
                due = began + started / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await asyncio.gather(*running)

    def _body(self, text: str, *, stream: bool) -> dict[str, object]:
        messages = [{"role": "user", "content": text}]
        return {"model": MODEL, "messages": messages, "stream": stream}

    async def _chat(self, client: httpx2.AsyncClient) -> None:
        self.sent.chats += 1
        sent_at, began = time.strftime("%H:%M:%S", time.gmtime()), time.monotonic()
        try:
            answer = await client.post(
                "/chat/completions", json=self._body("say: hi", stream=False)
            )
        except httpx2.TransportError as error:
            self.sent.failed.append(f"chat: {error!r}")
        else:
            if answer.status_code == 200:
                self.sent.answered.add(answer.headers["x-request-id"])
            else:
                self.sent.failed.append(f"chat: {answer.status_code} {answer.text[:200]}")
        if (took := time.monotonic() - began) > self.sent.longest:
            self.sent.longest, self.sent.longest_at = took, sent_at

    async def _stream(self, client: httpx2.AsyncClient) -> None:
        self.sent.streams += 1
        tokens = int(next(self._stream_seconds) * _TOKENS_A_SECOND)
        text = f"[[sim tokens={tokens} pace={_TOKENS_A_SECOND}]]"
        last = ""
        try:
            async with client.stream(
                "POST", "/chat/completions", json=self._body(text, stream=True)
            ) as answer:
                if answer.status_code != 200:
                    await answer.aread()
                    self.sent.failed.append(f"stream: {answer.status_code} {answer.text[:200]}")
                    return
                self.sent.answered.add(answer.headers["x-request-id"])
                async for line in answer.aiter_lines():
                    last = line or last
        except (httpx2.TransportError, ssl.SSLError) as error:
            (self.sent.cut if last else self.sent.failed).append(f"stream: {error!r}")
            return
        if last != "data: [DONE]":
            self.sent.cut.append(f"stream: {json.dumps(last)[:200]}")
