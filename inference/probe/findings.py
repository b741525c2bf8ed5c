"""The findings of a probe; plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage

Value = TypeVar("Value")


@dataclass(frozen=True)
class Found(Generic[Value]):
    """The outcome of one step. ``value`` is None when it is not known; ``words`` give the reason."""

    value: Value | None
    words: str


@dataclass(frozen=True)
class ModelFindings:
    """The findings about one model of a server."""

    name: str
    """The server's name for it."""
    chat: Found[bool]
    """Whether a whole answer came, in the shape of the convention."""
    stream: Found[bool]
    usage: Found[bool]
    """Whether token counts come with whole answers, and at the end of streams."""
    output_cap: Found[OutputCapField]
    running_usage: Found[RunningUsage]
    tool_calling: Found[bool]
    structured_output: Found[bool]
    context_length: Found[int]
    """Tokens of prompt and answer together, as the server is configured."""
    abort: Found[bool]
    """Whether the server answers promptly after a client disconnected in the middle of a stream."""

    @property
    def works(self) -> bool:
        """Whether chat works, whole and streamed."""
        return bool(self.chat.value and self.stream.value)


@dataclass(frozen=True)
class ServerFindings:
    """The findings about one server."""

    base_url: str
    """The address at which it answers, without a final slash."""
    connection: Found[bool]
    listing: Found[bool]
    """Whether it lists its models."""
    listed: Sequence[str]
    """Every model that it lists."""
    keep_alive: Found[KeepAlive]
    models: Sequence[ModelFindings]
    """The models that were probed."""

    @property
    def working(self) -> list[ModelFindings]:
        """The models with which chat works."""
        return [model for model in self.models if model.works]
