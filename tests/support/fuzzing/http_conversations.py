"""Conversations on one HTTP/1.1 connection: valid and broken requests, cut into any writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.support.fuzzing.byte_edits import cut, edited
from tests.support.fuzzing.http_tokens import (
    CODINGS,
    CONNECTIONS,
    HARMLESS,
    HOST,
    LENGTHS,
    METHODS,
    ODD_HEADERS,
    PIECES,
    SOCKET_KEYS,
    TARGETS,
    UPGRADES,
    VERSIONS,
)

MARK = "zq{}x"
"""A word in a request that comes back in its answer."""


@dataclass(frozen=True)
class Keys:
    """The keys of one run. ``decoy`` is in bodies only, so no request may be served for it."""

    inference: str
    speech: str
    decoy: str


@dataclass(frozen=True)
class Asked:
    """A valid request and its answer: one of ``statuses``, with ``mark`` in its body."""

    statuses: frozenset[int]
    mark: str = ""
    closes: bool = False
    """Whether the connection ends after the answer."""


@dataclass(frozen=True)
class Conversation:
    """What a client writes on one connection.

    ``asked`` are the first requests up to one that is broken or whose answer depends on the
    reader; empty for a damaged conversation, whose bytes say themselves what was asked.
    """

    seed: int
    on_speech: bool
    writes: Sequence[bytes]
    asked: Sequence[Asked]
    hangs_up: bool
    """Whether the client ends its side after the last write."""
    is_valid: bool = False
    """Whether nothing in it is broken, so that ``asked`` are all requests that may be answered."""
    writes_on: bool = False
    """Whether more follows behind a request that ends the connection. It is answered with a reset, by
    which the client's own system may drop what it has not read."""

    @property
    def sent(self) -> bytes:
        return b"".join(self.writes)


@dataclass
class _Message:
    """One request on its way to bytes."""

    method: str = "GET"
    target: str = "/v1/models"
    version: str = "HTTP/1.1"
    headers: list[str] = field(default_factory=list)
    body: bytes = b""
    asked: Asked | None = None
    """None for one whose answer depends on the reader, or that is broken."""

    def encoded(self) -> bytes:
        head = "\r\n".join([f"{self.method} {self.target} {self.version}", *self.headers])
        return head.encode("latin-1") + b"\r\n\r\n" + self.body


class Conversations:
    """Makes the conversation of a seed, always the same."""

    def __init__(self, keys: Keys, model: str) -> None:
        self._keys = keys
        self._model = model

    def make(self, seed: int) -> Conversation:
        random = Random(seed)
        on_speech = random.random() < 0.25
        messages = [
            self._message(random, seed * 100 + number, on_speech)
            for number in range(random.choice((1, 1, 2, 2, 3, 5, 8)))
        ]
        if random.random() < 0.8:
            # The server ends the connection after this one, which takes no time to find out.
            last = self._unknown_model(random, seed * 100 + 99, on_speech)
            messages.append(_closing(last))
        content = b"".join(message.encoded() for message in messages)
        asked: list[Asked] = []
        for message in messages:
            if message.asked is None:
                break
            asked.append(message.asked)
            if message.asked.closes:
                break
        is_valid = all(message.asked is not None for message in messages)
        if random.random() < 0.35:
            content, asked, is_valid = edited(random, content, PIECES), [], False
        return Conversation(
            seed=seed,
            on_speech=on_speech,
            writes=cut(random, content),
            asked=asked,
            hangs_up=random.random() < 0.1,
            is_valid=is_valid,
            writes_on=len(asked) < len(messages),
        )

    def _message(self, random: Random, number: int, on_speech: bool) -> _Message:
        makers: list[tuple[int, Callable[[Random, int, bool], _Message]]] = [
            (5, self._unknown_model),
            (3, self._models),
            (3, self._chat),
            (4, self._unread_body),
            (4, self._refused_chat),
            (2, self._form),
        ]
        (make,) = random.choices([each for _, each in makers], [weight for weight, _ in makers])
        message = make(random, number, on_speech)
        if random.random() < 0.35:
            message.headers.insert(random.randrange(len(message.headers) + 1), _harmless(random))
        if random.random() < 0.3:
            _ask_for_upgrade(random, message)
        if random.random() < 0.2:
            _break(random, message)
        if message.asked is not None and random.random() < 0.05:
            message = _closing(message)
        return message

    def _authorized(self, on_speech: bool) -> list[str]:
        key = self._keys.speech if on_speech else self._keys.inference
        return [HOST, f"authorization: Bearer {key}"]

    def _unknown_model(self, random: Random, number: int, on_speech: bool) -> _Message:
        mark = MARK.format(number)
        asked = Asked(frozenset({404}), "" if on_speech else mark)
        headers = self._authorized(on_speech)
        return _Message("GET", f"/v1/models/{mark}", headers=headers, asked=asked)

    def _models(self, random: Random, number: int, on_speech: bool) -> _Message:
        method = random.choice(("GET", "GET", "HEAD", "DELETE"))
        statuses = {"GET": {200}, "HEAD": {200, 405}, "DELETE": {405}}[method]
        headers = self._authorized(on_speech)
        return _Message(method, "/v1/models", headers=headers, asked=Asked(frozenset(statuses)))

    def _chat(self, random: Random, number: int, on_speech: bool) -> _Message:
        mark = MARK.format(number)
        body: dict[str, object] = {
            "model": self._model,
            "messages": [{"role": "user", "content": f"say: {mark}"}],
            "stream": random.random() < 0.3,
        }
        headers = self._authorized(on_speech)
        asked = Asked(frozenset({404} if on_speech else {200}), "" if on_speech else mark)
        message = _Message("POST", "/v1/chat/completions", headers=headers, asked=asked)
        return _with_body(random, message, json.dumps(body).encode())

    def _refused_chat(self, random: Random, number: int, on_speech: bool) -> _Message:
        """A body that looks like requests, where a chat was expected."""
        headers = random.choice((self._authorized(on_speech), [HOST]))
        statuses = {404} if on_speech else {401} if headers == [HOST] else {400}
        asked = Asked(frozenset(statuses))
        message = _Message("POST", "/v1/chat/completions", headers=headers, asked=asked)
        message = _with_body(random, message, self._decoys(random))
        if statuses == {401} and b"chunked" in message.headers[-1].lower().encode():
            # The gateway does not read a body of unknown length without a key.
            message.asked = Asked(asked.statuses, asked.mark, closes=True)
        return message

    def _unread_body(self, random: Random, number: int, on_speech: bool) -> _Message:
        """A body on a path that takes none."""
        method = random.choice(("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
        asked = Asked(frozenset({404}))
        message = _Message(method, f"/v1/nowhere{number}", headers=[HOST], asked=asked)
        return _with_body(random, message, self._decoys(random))

    def _form(self, random: Random, number: int, on_speech: bool) -> _Message:
        path = random.choice(("/console/login/", "/admin/login/", "/login"))
        statuses = {404} if on_speech or path == "/login" else {200, 301, 302, 400, 403, 404}
        message = _Message("POST", path, headers=[HOST], asked=Asked(frozenset(statuses)))
        message.headers.append("content-type: application/x-www-form-urlencoded")
        return _with_body(random, message, self._decoys(random))

    def _decoys(self, random: Random) -> bytes:
        body = json.dumps(
            {"model": self._model, "messages": [{"role": "user", "content": "say: decoy"}]}
        )
        key = f"{HOST}\r\nauthorization: Bearer {self._keys.decoy}\r\n"
        chat = (
            f"POST /v1/chat/completions HTTP/1.1\r\n{key}content-length: {len(body)}\r\n\r\n{body}"
        )
        models = f"GET /v1/models HTTP/1.1\r\n{key}\r\n"
        texts = (chat, models, "\r\n" * 5 + chat, "\r\n", "0\r\n\r\n" + chat, "a=b&c=%00")
        return "".join(random.choices(texts, k=random.choice((1, 1, 2, 4)))).encode()


def _closing(message: _Message) -> _Message:
    asked = message.asked
    message.headers = [each for each in message.headers if not each.startswith("connection:")]
    message.headers.append("connection: close")
    if asked is not None:
        message.asked = Asked(asked.statuses, asked.mark, closes=True)
    return message


def _with_body(random: Random, message: _Message, body: bytes) -> _Message:
    if random.random() < 0.5:
        message.headers.append(
            f"{random.choice(('content-length', 'Content-Length'))}: {len(body)}"
        )
        message.body = body
        return message
    message.headers.append(
        random.choice(("transfer-encoding: chunked", "Transfer-Encoding: Chunked"))
    )
    sizes = random.choice(((1,), (7, 40), (1000,)))
    parts, at = [], 0
    while at < len(body):
        part = body[at : at + random.choice(sizes)]
        at += len(part)
        number = f"{len(part):{random.choice(('x', 'X', '08x'))}}".encode()
        extension = random.choice((b"", b"", b"", b";a=b", b';a="b;c"', b";a"))
        parts.append(number + extension + b"\r\n" + part + b"\r\n")
    trailer = random.choice((b"", b"", b"x-one: 1\r\n", b"host: evil.example\r\n"))
    message.body = b"".join(parts) + random.choice((b"0", b"000")) + b"\r\n" + trailer + b"\r\n"
    return message


def _harmless(random: Random) -> str:
    return random.choice(HARMLESS)


def _ask_for_upgrade(random: Random, message: _Message) -> None:
    """Ask for another protocol, which the server may ignore or refuse."""
    headers = [f"upgrade: {random.choice(UPGRADES)}", f"connection: {random.choice(CONNECTIONS)}"]
    if random.random() < 0.4:
        headers.append(f"sec-websocket-key: {random.choice(SOCKET_KEYS)}")
        headers.append(f"sec-websocket-version: {random.choice(('13', '13', '99'))}")
    if random.random() < 0.1:
        message.target = "/v1/audio/speech/stream"
    random.shuffle(headers)
    message.headers += headers
    message.asked = None


def _break(random: Random, message: _Message) -> None:
    message.asked = None
    kind = random.randrange(7)
    if kind == 0:
        message.method = random.choice(METHODS)
    elif kind == 1:
        message.target = random.choice(TARGETS)
    elif kind == 2:
        message.version = random.choice(VERSIONS)
    elif kind == 3:
        at = random.randrange(len(message.headers) + 1)
        message.headers.insert(at, random.choice(ODD_HEADERS))
    elif kind == 4:
        message.headers.append(f"content-length: {random.choice(LENGTHS)}")
    elif kind == 5:
        message.headers.append(f"transfer-encoding: {random.choice(CODINGS)}")
    else:
        message.headers.remove(HOST)
