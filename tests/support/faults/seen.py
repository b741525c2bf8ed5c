"""A client's view of its request, to compare with the ledger later."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import httpx2

from tests.support.live import NO_TLS, Gateway

CAP = 50_000
"""Tokens that a request reserves beyond its prompt: enough to notice when they are not refunded."""


@dataclass(frozen=True)
class Seen:
    """One request as its client saw it.

    ``marker`` is in the prompt, so that the model server's log can be searched for it. ``status``
    and ``request_id`` are None when no answer began. ``code``: the error's code, in band or not.
    ``complete``: a whole JSON answer, or ``[DONE]``. ``pieces``: content frames of a stream.
    """

    marker: str
    streamed: bool
    request_id: str | None = None
    status: int | None = None
    code: str | None = None
    complete: bool = False
    pieces: int = 0
    usage: dict[str, Any] | None = None
    seconds: float = 0.0
    retry_after_ms: int = 0

    @property
    def told(self) -> tuple[int | None, str | None]:
        """Status and code, to compare with the table of failures."""
        return self.status, self.code


def new_marker() -> str:
    return f"case-{uuid.uuid4().hex}"


def chat_body(marker: str, text: str, model: str, **fields: Any) -> dict[str, Any]:
    """A request whose prompt begins with ``marker``."""
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"{marker}. {text}"}],
        "max_completion_tokens": CAP,
        **fields,
    }


def ask(gateway: Gateway, model: str, text: str = "", *, streamed: bool, **fields: Any) -> Seen:
    """Send a request and read the answer to its end."""
    marker = new_marker()
    body = chat_body(marker, text, model, stream=streamed, **fields)
    head: httpx2.Response | None = None
    read = b""
    began = time.monotonic()
    with (
        suppress(httpx2.TransportError),
        httpx2.stream(
            "POST",
            f"{gateway.base_url}/chat/completions",
            json=body,
            headers=gateway.headers,
            timeout=60,
            verify=NO_TLS,
        ) as answer,
    ):
        head = answer
        for piece in answer.iter_bytes():
            read += piece
    seconds = time.monotonic() - began
    if head is None:
        return Seen(marker, streamed, seconds=seconds)
    found = read_answer(marker, head.status_code, dict(head.headers), read)
    return replace(found, streamed=streamed, seconds=seconds)


def read_answer(marker: str, status: int, headers: dict[str, str], body: bytes) -> Seen:
    """The view of a client that received ``body``, maybe incomplete; ``headers`` in lower case."""
    request_id = headers.get("x-request-id")
    if headers.get("content-type", "").startswith("text/event-stream"):
        return _read_stream(marker, request_id, status, body)
    try:
        answer = json.loads(body)
    except ValueError:
        return Seen(marker, streamed=False, request_id=request_id, status=status)
    error = answer.get("error")
    return Seen(
        marker,
        streamed=False,
        request_id=request_id,
        status=status,
        code=error["code"] if error else None,
        complete=status == 200 and not error,
        usage=answer.get("usage"),
        retry_after_ms=int(headers.get("retry-after-ms", 0)),
    )


def _read_stream(marker: str, request_id: str | None, status: int, body: bytes) -> Seen:
    """Parse strictly: only ``data:`` frames and blank lines; an incomplete last frame is dropped."""
    *whole, rest = body.decode().split("\n\n")
    assert not rest or rest.startswith(("data: "[: len(rest)], "data: ")), rest[:80]
    frames: list[Any] = []
    for frame in whole:
        assert frame.startswith("data: "), frame[:80]
        assert "\n" not in frame, frame[:80]
        payload = frame.removeprefix("data: ")
        frames.append(payload if payload == "[DONE]" else json.loads(payload))
    objects = [frame for frame in frames if frame != "[DONE]"]
    errors = [frame["error"]["code"] for frame in objects if "error" in frame]
    usages = [frame["usage"] for frame in objects if frame.get("usage")]
    complete = frames[-1:] == ["[DONE]"]
    assert frames.count("[DONE]") == complete, "[DONE] is the last frame or none"
    assert len(errors) + complete <= 1, "a stream ends once"
    assert not errors or "error" in frames[-1], "nothing follows an error"
    assert len(usages) == complete, "usage comes once, in a whole stream"
    return Seen(
        marker,
        streamed=True,
        request_id=request_id,
        status=status,
        code=errors[0] if errors else None,
        complete=complete,
        pieces=sum(1 for frame in objects if _content(frame)),
        usage=usages[0] if usages else None,
    )


def _content(frame: dict[str, Any]) -> str | None:
    choices = frame.get("choices")
    content: str | None = choices[0]["delta"].get("content") if choices else None
    return content
