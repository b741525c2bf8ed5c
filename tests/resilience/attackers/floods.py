"""Attackers who send more than others: requests that take long, or are refused, or look for a key."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
import string
import zlib
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any

from speech.wire import LONGEST_SESSION
from tests.resilience.attackers.tools import Tally, flood
from tests.resilience.target import Target
from tests.resilience.wire import Cut, WebSocket, chat, request, speech

_READ_KEY_PATH = "/v1/usage?group_by=model,api_key,time&bucket=hour"


async def read_key(target: Target, tally: Tally) -> None:
    """The holder of a read key asks for large summaries and models, very many at once.

    He hopes to use up the threads and database connections that everybody's pages need.
    """
    key = target.tenant.read
    summary = request("GET", _READ_KEY_PATH, key=key)
    page = request("GET", "/v1/usage/export?limit=1000", key=key)
    models = request("GET", "/v1/models", key=target.tenant.inference)
    voices = request("GET", "/v1/models", key=target.tenant.speech)
    await asyncio.gather(
        flood(lambda: tally.ask(target.port, summary), per_second=60, at_once=100),
        flood(lambda: tally.ask(target.port, page), per_second=10, at_once=20),
        flood(lambda: tally.ask(target.port, models), per_second=20, at_once=20),
        flood(lambda: tally.ask(target.speech_port, voices), per_second=20, at_once=20),
    )


_CONSOLE_USER_PAGES = ("usage", "requests", "keys", "keys/new")


async def console_user(target: Target, tally: Tally) -> None:
    """A member who is logged in reloads the console's pages as fast as he can.

    He hopes that pages that sum and draw use up the threads and database connections of everybody else.
    """
    cookie = {"Cookie": f"sessionid={target.tenant.session}"}
    console = f"/console/{target.tenant.organization}"
    contents = [request("GET", f"{console}/{page}", headers=cookie) for page in _CONSOLE_USER_PAGES]
    await asyncio.gather(
        *(
            flood(
                lambda content=content: tally.ask(target.port, content),  # type: ignore[misc]
                per_second=15,
                at_once=30,
            )
            for content in contents
        )
    )


_CAPTURES_SIZE = 60_000


async def captures(target: Target, tally: Tally) -> None:
    """The holder of an inference key has each of many large chats captured for diagnosis.

    He hopes to fill the database, which keeps captures for days.
    """
    content = request(
        "POST",
        "/v1/chat/completions",
        key=target.tenant.inference,
        body=chat(target, "a " * (_CAPTURES_SIZE // 2) + "[[sim tokens=1]]"),
        headers={"x-svc-diagnostic-capture": "1"},
    )
    await flood(lambda: tally.ask(target.port, content), per_second=20, at_once=8)


_SPENT_KEY_LARGE = 900_000


async def spent_key(target: Target, tally: Tally) -> None:
    """The holder of a key whose limit is used up goes on: small chats, bodies of 900 KB, no JSON at all.

    He hopes that what is refused costs the gateway more than it costs him.
    """
    small = chat(target, "hello")
    numbers = b'{"model":"%s","messages":[],"stop":[%s1]}' % (
        target.model.encode(),
        b"1e-309," * (_SPENT_KEY_LARGE // 7),
    )
    nested = b'{"model":"%s","metadata":[%s[]]}' % (
        target.model.encode(),
        b"[]," * (_SPENT_KEY_LARGE // 3),
    )
    broken = b'{"model":"' + b"\\u0041" * (_SPENT_KEY_LARGE // 6)
    large = chat(target, "words " * (_SPENT_KEY_LARGE // 6))

    def chats(body: bytes, per_second: float, at_once: int) -> asyncio.Future[None]:
        content = request("POST", "/v1/chat/completions", key=target.tenant.spent, body=body)
        return asyncio.ensure_future(
            flood(lambda: tally.ask(target.port, content), per_second=per_second, at_once=at_once)
        )

    await asyncio.gather(
        chats(small, 60, 20),
        chats(numbers, 2, 2),
        chats(nested, 2, 2),
        chats(broken, 2, 2),
        chats(large, 2, 2),
    )


_INVENTED_KEYS_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def invented(prefix: str) -> str:
    """A key that passes for one until it is looked up (docs/explain/keys.md)."""
    body = prefix + "".join(secrets.choice(_INVENTED_KEYS_ALPHABET) for _ in range(30))
    number = zlib.crc32(body.encode())
    check = []
    for _ in range(6):
        number, digit = divmod(number, 62)
        check.append(_INVENTED_KEYS_ALPHABET[digit])
    return body + "".join(reversed(check))


async def invented_keys(target: Target, tally: Tally) -> None:
    """Somebody without a key makes up keys of the right form, hundreds in a second, for every address.

    He hopes that looking them up keeps the gateway from looking up the keys of others.
    """
    body = chat(target, "hello")

    def ask_a_chat() -> Awaitable[object]:
        content = request("POST", "/v1/chat/completions", key=invented("svc_live_"), body=body)
        return tally.ask(target.port, content)

    def ask_a_page() -> Awaitable[object]:
        return tally.ask(target.port, request("GET", "/v1/models", key=invented("svc_live_")))

    def ask_for_usage() -> Awaitable[object]:
        return tally.ask(target.port, request("GET", "/v1/usage", key=invented("svc_read_")))

    await asyncio.gather(
        flood(ask_a_chat, per_second=150, at_once=600),
        flood(ask_a_page, per_second=50, at_once=150),
        flood(ask_for_usage, per_second=50, at_once=150),
    )


def schemas() -> list[Any]:
    """Documents of about 900 KB: many branches, unknown types, properties, references."""
    return [
        {"anyOf": [{}] * 290_000},
        {"anyOf": [{"type": "x"}] * 60_000},
        {"type": "object", "properties": {f"p{n}": {} for n in range(70_000)}},
        {
            "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(25_000)},
            "$ref": "#/$defs/d0",
        },
        {"enum": list(range(120_000))},
    ]


async def huge_schemas(target: Target, tally: Tally) -> None:
    """The holder of an inference key sends schemas and tools of 900 KB that take long to judge.

    He hopes that a request which is refused in the end stops the event loop for seconds first.
    """
    formats = [
        {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        for schema in schemas()
    ]
    bodies = [chat(target, "hello", response_format=each) for each in formats]
    tool: dict[str, Any] = {"name": "x", "parameters": schemas()[2]}
    bodies.append(chat(target, "hello", tools=[{"type": "function", "function": tool}]))
    bodies = [json.dumps(json.loads(body), separators=(",", ":")).encode() for body in bodies]
    contents = itertools.cycle(
        request("POST", "/v1/chat/completions", key=target.tenant.inference, body=body)
        for body in bodies
    )
    await flood(lambda: tally.ask(target.port, next(contents)), per_second=4, at_once=4)


PATTERNS = ("a. b ", "1 !", "1 <", "e.g. ", "e.g. ]etc. ", "[pause]")
PIECE = 500
"""Characters of one message: as many as no gateway leaves to another process at once."""
_HEAVY_TEXTS_LENGTH = 4096
_HEAVY_TEXTS_FORMATS = ("wav", "mp3", "opus", "flac")


def _in_pieces(pattern: str) -> list[str]:
    text = (pattern * LONGEST_SESSION)[:LONGEST_SESSION]
    return [text[at : at + PIECE] for at in range(0, LONGEST_SESSION, PIECE)]


async def heavy_texts(target: Target, tally: Tally) -> None:
    """The holder of a speech key sends texts that take longest to read: a full stop after each letter.

    He hopes that reading them, before any limit is asked, and encoding what is spoken keeps the processor
    from everybody else.
    """
    texts = [(pattern * _HEAVY_TEXTS_LENGTH)[:_HEAVY_TEXTS_LENGTH] for pattern in PATTERNS]
    pieces = itertools.cycle(_in_pieces(pattern) for pattern in PATTERNS)
    contents = itertools.cycle(
        request("POST", "/v1/audio/speech", key=target.tenant.speech, body=body)
        for body in map(
            partial(speech, target),
            texts * len(_HEAVY_TEXTS_FORMATS),
            itertools.cycle(_HEAVY_TEXTS_FORMATS),
        )
    )

    async def session(texts: list[str]) -> None:
        socket = WebSocket(target, target.tenant.speech)
        with suppress(Cut):
            async with socket:
                await socket.send(type="start", voice=target.voice)
                for text in texts:
                    await socket.send(type="text", text=text)
                await socket.send(type="cancel")
                while True:
                    await socket.receive()
        tally.add(f"session {socket.status}")

    await asyncio.gather(
        flood(lambda: tally.ask(target.speech_port, next(contents)), per_second=20, at_once=12),
        flood(lambda: session(texts), per_second=2, at_once=2),
        # Small pieces, cancelled before anything is spoken, which only then would be charged.
        flood(lambda: session(next(pieces)), per_second=10, at_once=4),
    )
