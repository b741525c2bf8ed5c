"""WebSocket sessions of the speech surface: what is sent, and what the server sends until it closes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

START = {"type": "start", "voice": "ava"}
DONE = {"type": "done"}

_SECONDS = 20.0


def text(of: str) -> dict[str, str]:
    return {"type": "text", "text": of}


SESSIONS: dict[str, list[Any]] = {
    "whole": [START, text("Hello there. How are "), text("you? "), DONE],
    "mp3, flushed": [{**START, "response_format": "mp3"}, text("Hello"), {"type": "flush"}, DONE],
    "cancelled": [START, text("Hello there. "), {"type": "cancel"}],
    "nothing to speak": [START, DONE],
    "blank": [START, text("  \n"), DONE],
    "no start": [text("Hello.")],
    "two starts": [START, START],
    "text after done": [START, text("Hello."), DONE, text("More.")],
    "unknown voice": [{**START, "voice": "nobody"}],
    "no voice": [{"type": "start"}],
    "unknown type": [START, {"type": "sing"}],
    "no type": [{}],
    "not JSON": ["{"],
    "an array": ["[]"],
    "binary": [b"x"],
    "wrong format": [{**START, "response_format": "aac"}],
    "wrong speed": [{**START, "speed": 9}],
    "too long a text": [START, text("x" * 4097)],
    "text that is a number": [START, {"type": "text", "text": 5}],
    "a long message": [START, text("x" * 70_000)],
    "a failing engine": [
        {**START, "voice": "remote-file"}, text("[[sim fault=status@500]] Hello."), DONE,
    ],
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Session:
    """What a server sent. ``refused`` is the status, headers and body of a refused upgrade."""

    messages: list[str | bytes]
    close: tuple[int, str] | None
    refused: tuple[int, list[tuple[str, str]], bytes] | None = None


def run(port: int, key: str | None, sent: list[Any], path: str = "stream") -> Session:
    """Send ``sent`` in one session, and read until the server closes."""
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    address = f"ws://127.0.0.1:{port}/v1/audio/speech/{path}"
    try:
        connection = connect(address, additional_headers=headers, proxy=None, compression=None)
    except InvalidStatus as refused:
        response = refused.response
        fields = list(response.headers.raw_items())
        return Session([], None, (response.status_code, fields, bytes(response.body or b"")))
    messages: list[str | bytes] = []
    with connection:
        try:
            for each in sent:
                connection.send(each if isinstance(each, str | bytes) else json.dumps(each))
            while True:
                messages.append(connection.recv(_SECONDS))
        except ConnectionClosed as closed:
            ending = closed.rcvd
            return Session(messages, None if ending is None else (ending.code, ending.reason))
        except TimeoutError:
            return Session(messages, (0, "the server did not close"))
