"""Reads answers of any dialect without assuming their shape."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

_LONGEST_TEXT: Final = 65_536
_LARGEST_COUNT: Final = 2**31 - 1


def at(value: Any, *path: str | int) -> Any:
    """Return the value at ``path`` (member names and list indexes) in ``value``, or None."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def count_at(value: Any, *path: str | int) -> int | None:
    """Return the positive integer at ``path``, or None."""
    found = at(value, *path)
    is_count = isinstance(found, int) and not isinstance(found, bool)
    return found if is_count and 0 < found <= _LARGEST_COUNT else None


def text_at(value: Any, *path: str | int) -> str:
    """Return the string at ``path``, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def items_at(value: Any, *path: str | int) -> list[Any]:
    """Return the list at ``path``, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def one_line(text: str, longest: int = 200) -> str:
    """Make ``text`` fit for a terminal: printable, on one line, at most ``longest`` characters."""
    shown = "".join(each if each.isprintable() else " " for each in text[: 2 * longest])
    return " ".join(shown.split())[:longest]


@dataclass(frozen=True)
class TokenCounts:
    """Token counts as a server reports them."""

    prompt: int
    completion: int


def usage_of(answer: Any) -> TokenCounts | None:
    """Return the ``usage`` of an answer or a chunk, or None."""
    prompt = count_at(answer, "usage", "prompt_tokens")
    completion = at(answer, "usage", "completion_tokens")
    if prompt is None or not isinstance(completion, int) or isinstance(completion, bool):
        return None
    return TokenCounts(prompt, completion)


@dataclass(frozen=True)
class ToolCall:
    """A tool call; ``arguments`` are decoded, or None if they are not a JSON object."""

    name: str
    arguments: dict[str, Any] | None


@dataclass
class Whole:
    """A whole answer. ``reused``: it came over a kept connection; ``said_close``: its headers
    announce that the connection closes."""

    text: str
    tool_calls: list[ToolCall]
    finish_reason: str
    usage: TokenCounts | None
    seconds: float = 0.0
    reused: bool = False
    said_close: bool = False


def whole_of(answer: Any) -> Whole | None:
    """Parse ``answer`` as a chat completion; None when it is not one."""
    choice = at(answer, "choices", 0)
    if not isinstance(at(choice, "message"), dict):
        return None
    return Whole(
        text=text_at(choice, "message", "content")[:_LONGEST_TEXT],
        tool_calls=[_call(each) for each in items_at(choice, "message", "tool_calls")[:16]],
        finish_reason=text_at(choice, "finish_reason"),
        usage=usage_of(answer),
    )


def _call(call: Any) -> ToolCall:
    arguments = at(call, "function", "arguments")
    if isinstance(arguments, str):
        arguments = json_object(arguments)
    name = text_at(call, "function", "name")
    return ToolCall(name, arguments if isinstance(arguments, dict) else None)


def json_object(text: str) -> dict[str, Any] | None:
    """Parse ``text`` as a JSON object, or return None."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def chunk_error(chunk: dict[str, Any]) -> bool:
    """Whether ``chunk`` is an error in place of a chunk."""
    return bool(chunk.get("error")) and not chunk.get("choices")


@dataclass
class Streamed:
    """A streamed answer, chunk by chunk."""

    chunks: int = 0
    pieces: int = 0
    """Chunks that carried text, reasoning or a part of a tool call."""
    pieces_with_usage: int = 0
    pieces_with_timings: int = 0
    finish_reason: str = ""
    usage: TokenCounts | None = None
    """The last one received."""
    done: bool = field(default=False)
    disconnected: bool = False
    """Whether the probe disconnected before the end."""

    @property
    def is_complete(self) -> bool:
        """Whether the stream ended with a finish reason, as the convention requires."""
        return bool(self.finish_reason)

    def add(self, chunk: Any) -> None:
        """Count ``chunk``; None stands for ``[DONE]``."""
        if chunk is None:
            self.done = True
            return
        self.chunks += 1
        usage = usage_of(chunk)
        self.usage = usage or self.usage
        delta = at(chunk, "choices", 0, "delta")
        self.finish_reason = text_at(chunk, "choices", 0, "finish_reason") or self.finish_reason
        names = ("content", "reasoning_content", "reasoning", "tool_calls")
        if not any(at(delta, name) for name in names):
            return
        self.pieces += 1
        if usage is not None and usage.completion > 0:
            self.pieces_with_usage += 1
        if count_at(chunk, "timings", "predicted_n") is not None:
            self.pieces_with_timings += 1
