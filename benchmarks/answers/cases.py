"""One request of the list, and helpers to write many of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Case:
    """A request. ``key`` names one of the keys in ``servers.Keys``, or is None for no credential."""

    name: str
    surface: str
    method: str
    path: str
    key: str | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def content(body: Any) -> bytes:
    """Return ``body`` if it is bytes, else as JSON."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def chat(name: str, body: Any, key: str | None = "inference", **headers: str) -> Case:
    """Build a chat request."""
    return Case(f"chat: {name}", "inference", "POST", CHAT, key, content(body), headers)


def say(text: str, model: str = "acme/demo-8b", **fields: Any) -> dict[str, Any]:
    """Build the body of a chat request with one message of the user."""
    return {"model": model, "messages": [{"role": "user", "content": text}], **fields}


def get(surface: str, path: str, key: str | None, method: str = "GET") -> Case:
    """Build a request without a body."""
    return Case(f"{surface}: {method} {path} as {key}", surface, method, path, key)


def speech(
    name: str, body: Any, key: str | None = "speech", path: str = "/v1/audio/speech"
) -> Case:
    """Build a request to the speech surface."""
    return Case(f"speech: {name}", "speech", "POST", path, key, content(body))
