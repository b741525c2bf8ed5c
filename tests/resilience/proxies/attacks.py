"""Requests that a proxy and the gateway could divide differently, each with another request inside.

A server that stops reading a request at its ``Upgrade`` field, or at ``CONNECT``, takes the body for
the next request of the connection. A proxy that keeps the connection then gives the answer to
the client that sends the next request.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

INFERENCE_HOST = "ai.test"
SPEECH_HOST = "speech.test"
MODEL = "acme/demo-8b"

_HANDSHAKE = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")

UPGRADES: dict[str, tuple[str, ...]] = {
    "h2c": ("Connection: Upgrade", "Upgrade: h2c"),
    "h2c as Java asks for it": (
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAAP__",
    ),
    "mixed case": ("cOnNeCtIoN: uPgRaDe", "uPgRaDe: H2C"),
    "websocket and h2c": ("Connection: Upgrade", "Upgrade: websocket, h2c", *_HANDSHAKE),
    "h2c and websocket": ("Connection: Upgrade", "Upgrade: h2c, websocket", *_HANDSHAKE),
    "two fields": ("Connection: Upgrade", "Upgrade: websocket", "Upgrade: h2c", *_HANDSHAKE),
    "two fields turned round": ("Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"),
    "websocket": ("Connection: Upgrade", "Upgrade: websocket", *_HANDSHAKE),
    "websocket without a key": ("Connection: keep-alive, Upgrade", "Upgrade: WebSocket"),
    "an unknown protocol": ("Connection: Upgrade", "Upgrade: tunnel/1"),
    "no Connection": ("Upgrade: h2c",),
    "none": (),
}
"""The fields of each kind. The last is a control: an ordinary request with the same body."""
KINDS = (*UPGRADES, "a tunnel")


@dataclass(frozen=True, slots=True)
class Target:
    """A request line with its host, and the statuses that may answer it there."""

    host: str
    line: str
    with_key: frozenset[int]
    """To a request with a key that is valid there."""
    without: frozenset[int]
    closes: bool = False
    """Whether it is refused and closed before all of the body is read, so that the answer can be
    lost.
    """


def _target(host: str, line: str, with_key: set[int], without: set[int]) -> Target:
    return Target(host, line, frozenset(with_key), frozenset(without))


def _closed(host: str, line: str, *statuses: int) -> Target:
    """One that a proxy answers with 502 or 503 where it lost the gateway's answer."""
    found = frozenset({*statuses, 502, 503})
    return Target(host, line, found, found, closes=True)


TARGETS = (
    _target(INFERENCE_HOST, "POST /v1/chat/completions", {400}, {401}),
    _target(INFERENCE_HOST, f"GET /v1/models/{MODEL}", {200}, {401}),
    _target(INFERENCE_HOST, "POST /v1/audio/speech/stream", {404}, {404}),
    _target(INFERENCE_HOST, "POST /console/login/", {403, 413}, {403, 413}),
    _target(SPEECH_HOST, "POST /v1/audio/speech", {400, 413}, {401}),
    _closed(SPEECH_HOST, "GET /v1/audio/speech/stream", 426),
    _target(SPEECH_HOST, "POST /v1/audio/speech/stream", {405}, {405}),
    _target(SPEECH_HOST, "POST /v1/voices", {400}, {401}),
)
TUNNELS = (
    _closed(INFERENCE_HOST, "CONNECT /v1/chat/completions", 405),
    _closed(INFERENCE_HOST, "CONNECT *", 405),
    _closed(INFERENCE_HOST, f"CONNECT {INFERENCE_HOST}:80", 400, 405),
)
"""Of the last one the gateway may see another Host, without the port: 400."""
PADDINGS = (*(0, 0, 0, 2, 8_000, 8_000, 20_000, 20_000) * 2, 60_000, 300_000)
"""Bytes of empty lines ahead of the request inside: the proxy then sends it in a later write."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What the attacker has."""

    inference: str
    speech: str

    def of(self, host: str) -> str:
        return self.inference if host == INFERENCE_HOST else self.speech


@dataclass(frozen=True, slots=True)
class Attack:
    """One request of the attacker, and which statuses may answer it."""

    name: str
    writes: tuple[bytes, ...]
    """The bytes, in as many writes."""
    statuses: frozenset[int]
    asks_for_websocket: bool
    """Whether it asks for a WebSocket and for nothing else, though with a body."""
    may_be_reset: bool
    """Whether its answer can be lost, as in ``Target.closes``."""
    waits: bool
    """Whether the attacker waits for the answer, or hangs up once everything is sent."""


def chat(text: str, **fields: object) -> bytes:
    """The body of a chat request with one message."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": MODEL, "messages": messages, **fields}).encode()


def request(line: str, host: str, key: str | None, *headers: str, body: bytes = b"") -> bytes:
    """A whole request with its length, if it has a body."""
    lines = [f"{line} HTTP/1.1", f"Host: {host}", *headers]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _inside(choice: random.Random, keys: Keys, *, is_tunnel: bool) -> bytes:
    """The request that must never be taken for one.

    A proxy may read on behind a tunnel that it refuses; what follows is then the attacker's own
    request, on its own connection: a chat would be charged rightly.
    """
    asked = [
        request("GET /v1/models/acme/plain-8b", INFERENCE_HOST, None),
        request("GET /v1/models/acme/plain-8b", INFERENCE_HOST, keys.inference),
        request("GET /v1/models", SPEECH_HOST, keys.speech),
        request("GET /livez", INFERENCE_HOST, None),
    ]
    if not is_tunnel:
        body = chat("say: smuggled")
        asked.append(
            request("POST /v1/chat/completions", INFERENCE_HOST, keys.inference, body=body)
        )
    return choice.choice(asked)


def _framed(choice: random.Random, body: bytes) -> tuple[str, bytes]:
    """The field that says where ``body`` ends, and its bytes."""
    if choice.random() < 0.25:
        return "Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return f"Content-Length: {len(body)}", body


def attack(number: int, keys: Keys) -> Attack:
    """The attack of a round: the same for the same number."""
    choice = random.Random(number)
    kind = KINDS[number % len(KINDS)]
    target = choice.choice(TARGETS if kind in UPGRADES else TUNNELS)
    has_key = choice.random() < 0.5
    padding = b"\r\n" * (choice.choice(PADDINGS) // 2)
    inside = _inside(choice, keys, is_tunnel=kind not in UPGRADES)
    framing, body = _framed(choice, padding + inside)
    key = keys.of(target.host) if has_key else None
    head = request(target.line, target.host, key, *UPGRADES.get(kind, ()), framing)
    half = len(body) // 2
    told = f"{'a' if has_key else 'no'} key, {framing}"
    return Attack(
        name=f"{number}: {kind}, {target.line} of {target.host}, {told}",
        writes=choice.choice(((head + body,), (head, body), (head + body[:half], body[half:]))),
        statuses=target.with_key if has_key else target.without,
        asks_for_websocket=kind.startswith("websocket") and "h2c" not in kind,
        may_be_reset=target.closes,
        waits=choice.random() < 0.9,
    )
