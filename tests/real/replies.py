"""An answer of any chat server, streamed or whole, in one form that can be compared."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2


@dataclass
class Call:
    """A tool call, put together from ``fragments``."""

    id: str = ""
    name: str = ""
    arguments: str = ""
    fragments: int = 0


@dataclass
class Reply:
    """What a client understands of an answer.

    ``error`` is the ``error`` object of a refusal, or of a frame inside the stream; ``ended`` says
    whether a stream had its ``[DONE]``.
    """

    status: int
    request_id: str = ""
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)
    finish: str | None = None
    usage: dict[str, Any] | None = None
    usages: int = 0
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    frames: int = 0
    ended: bool = False

    @property
    def tokens(self) -> tuple[int, int]:
        """Prompt and completion tokens, as the answer reports them."""
        assert self.usage is not None, self
        return self.usage["prompt_tokens"], self.usage["completion_tokens"]

    def take(self, answer: dict[str, Any]) -> None:
        """Add a whole answer or a chunk."""
        if error := answer.get("error"):
            self.error = error
        if usage := answer.get("usage"):
            self.usage = usage
            self.usages += 1
        for choice in answer.get("choices") or []:
            message = choice.get("message") or choice.get("delta") or {}
            self.text += message.get("content") or ""
            self.reasoning += message.get("reasoning_content") or ""
            for place, call in enumerate(message.get("tool_calls") or []):
                self._take_call(call.get("index", place), call)
            self.logprobs += (choice.get("logprobs") or {}).get("content") or []
            self.finish = choice.get("finish_reason") or self.finish

    def _take_call(self, place: int, call: dict[str, Any]) -> None:
        while len(self.calls) <= place:
            self.calls.append(Call())
        found, function = self.calls[place], call.get("function") or {}
        found.id += call.get("id") or ""
        found.name += function.get("name") or ""
        found.arguments += function.get("arguments") or ""
        found.fragments += 1


def reply_of(answer: httpx2.Response) -> Reply:
    """Read a whole answer, a stream or a refusal."""
    reply = Reply(answer.status_code, answer.headers.get("x-request-id", ""))
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        reply.take(answer.json())
        return reply
    for line in answer.text.split("\n"):
        if line.startswith("data:"):
            payload = line.removeprefix("data:").strip()
            reply.ended = payload == "[DONE]"
            if not reply.ended:
                reply.frames += 1
                reply.take(json.loads(payload))
    return reply
