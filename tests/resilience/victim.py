"""A tenant at work, who measures: ``python -m tests.resilience.victim TARGET``.

It sends one request after the other of each kind, each on a new connection, and prints a line for
each, until its standard input is closed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from functools import partial

import msgspec

from tests.resilience.target import Target, load
from tests.resilience.wire import Answer, Cut, WebSocket, ask, chat, request, speech
from tests.support.builders import clips

ANSWER_SECONDS = 60.0
"""Seconds after which an answer counts as an error."""
_TEXT = "Bees fly."
_CLIP = clips.base64_of(clips.wav(clips.voice(3.2)))
"""A reference clip."""


class Kind(StrEnum):
    """The kinds of the victim's requests."""

    CHAT = "chat"
    STREAM = "stream"
    NEW_KEY = "new key"
    """A chat with a key that was never used before."""
    SPEECH = "speech"
    SOCKET = "socket"
    CLONE = "clone"
    """A reference clip under a name that exists: everything but its costly analysis."""
    USAGE = "usage"
    CSV = "CSV"
    CONSOLE = "console"
    LIVEZ = "livez"
    READYZ = "readyz"


PROBES = (Kind.LIVEZ, Kind.READYZ)

PAUSES = {
    Kind.CHAT: 0.1,
    Kind.STREAM: 0.15,
    Kind.NEW_KEY: 0.5,
    Kind.SPEECH: 0.4,
    Kind.SOCKET: 0.5,
    Kind.CLONE: 0.8,
    Kind.USAGE: 0.3,
    Kind.CSV: 0.5,
    Kind.CONSOLE: 0.6,
    Kind.LIVEZ: 0.05,
    Kind.READYZ: 0.05,
}
"""Seconds between an answer and the next request; together they leave most of one core idle."""


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One request: when it began (``time.monotonic``), how long it took, what went wrong."""

    kind: Kind
    began: float
    seconds: float
    error: str = ""


class Refused(Exception):
    """An answer that is an error for the victim."""


def _of_status(answer: Answer, status: int = 200) -> Answer:
    if answer.status != status:
        raise Refused(f"{answer.status} {answer.body[:150].decode(errors='replace')}")
    return answer


class Victim:
    """The requests by kind. Each raises for an answer that is not complete and successful."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._keys = target.tenant
        self._new_keys = iter(target.tenant.new_keys)
        self._clone = json.dumps({"name": "mine", "audio_b64": _CLIP, "consent": True}).encode()

    async def chat(self, key: str = "", *, stream: bool = False) -> None:
        body = chat(self._target, "hello [[sim tokens=5]]", stream=stream)
        key = key or self._keys.inference
        content = request("POST", "/v1/chat/completions", key=key, body=body)
        answer = _of_status(await ask(self._target.port, content))
        if stream and not answer.body.endswith(b"data: [DONE]\n\n"):
            raise Cut

    async def chat_with_a_new_key(self) -> None:
        # When all are used an old one is used again, which is no longer new to the gateway.
        await self.chat(next(self._new_keys, ""))

    async def speak(self) -> None:
        body = speech(self._target, _TEXT)
        content = request("POST", "/v1/audio/speech", key=self._keys.speech, body=body)
        _of_status(await ask(self._target.speech_port, content))

    async def speak_over_a_socket(self) -> None:
        socket = WebSocket(self._target, self._keys.speech)
        try:
            async with socket:
                await socket.send(type="start", voice=self._target.voice)
                await socket.send(type="text", text=_TEXT)
                await socket.send(type="done")
                sound = 0
                while True:
                    message = await socket.receive()
                    if isinstance(message, bytes):
                        sound += len(message)
                    elif message["type"] == "session.done":
                        break
                    elif message["type"] == "error":
                        raise Refused(json.dumps(message))
            if not sound:
                raise Refused("no sound")
        except Cut:
            raise Refused(f"closed, {socket.status}") from None

    async def offer_a_clip(self, status: int = 409) -> None:
        """Offer a clip under a name, which only the first one may have."""
        content = request("POST", "/v1/voices", key=self._keys.speech, body=self._clone)
        _of_status(await ask(self._target.speech_port, content), status)

    async def read(self, path: str) -> None:
        """Read a path of the API as the holder of a read key, a page as a member with a session."""
        if path.startswith("/v1"):
            content = request("GET", path, key=self._keys.read)
        else:
            content = request("GET", path, headers={"Cookie": f"sessionid={self._keys.session}"})
        _of_status(await ask(self._target.port, content))


async def measured(kind: Kind, once: Callable[[], Awaitable[None]]) -> Sample:
    """One request, timed."""
    began = time.monotonic()
    error = ""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await once()
    except TimeoutError:
        error = "no answer"
    except Refused as refused:
        error = str(refused)
    except (OSError, Cut) as failure:
        error = type(failure).__name__
    return Sample(kind, began, time.monotonic() - began, error)


async def _go_on(kind: Kind, once: Callable[[], Awaitable[None]]) -> None:
    while True:
        sample = await measured(kind, once)
        print(msgspec.json.encode(sample).decode(), flush=True)
        await asyncio.sleep(PAUSES[kind])


async def main(path: str) -> None:
    with suppress(PermissionError):
        # Its host is not the gateway's, so its own wait for a processor is none of the answer.
        os.nice(-20)
    target = load(path)
    victim = Victim(target)
    asked: dict[Kind, Callable[[], Awaitable[None]]] = {
        Kind.CHAT: victim.chat,
        Kind.STREAM: partial(victim.chat, stream=True),
        Kind.NEW_KEY: victim.chat_with_a_new_key,
        Kind.SPEECH: victim.speak,
        Kind.SOCKET: victim.speak_over_a_socket,
        Kind.CLONE: victim.offer_a_clip,
        Kind.USAGE: partial(victim.read, "/v1/usage"),
        Kind.CSV: partial(victim.read, "/v1/usage/export?format=csv&limit=1000"),
        Kind.CONSOLE: partial(victim.read, f"/console/{target.tenant.organization}/usage"),
        Kind.LIVEZ: partial(victim.read, "/livez"),
        Kind.READYZ: partial(victim.read, "/readyz"),
    }
    await victim.offer_a_clip(201)
    loop = asyncio.get_running_loop()
    closed = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), closed.set)
    tasks = [asyncio.create_task(_go_on(kind, once)) for kind, once in asked.items()]
    await closed.wait()
    for task in tasks:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
