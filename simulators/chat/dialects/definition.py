"""The definition of a dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from inference.wire.dialects import RunningUsage

Members = Mapping[str, Any]


class Opening(StrEnum):
    """The content of the first chunk of a stream."""

    EMPTY_CONTENT = "empty content"
    """The role and an empty ``content``."""
    NULL_CONTENT = "null content"
    """The role and a null ``content``."""
    WITH_FIRST_TOKEN = "with the first token"  # noqa: S105  # no password
    """There is no separate chunk: the role comes with the first token."""


class Calls(StrEnum):
    """How a streamed tool call is cut into pieces."""

    PIECES = "pieces"
    """As in the convention: id, type and name first, then pieces of the arguments."""
    NULLS = "nulls"
    """The later pieces have ``id: null``, ``name: null`` and the type again."""
    EMPTY_NAMES = "empty names"
    """The later pieces have ``name: ""`` and the type again."""
    WHOLE = "whole"
    """Each call comes in one piece."""


@dataclass(frozen=True, slots=True)
class InBandError:
    """The error and the end of a stream whose generation fails in the middle.

    Without a ``body`` it is an empty chunk. ``field`` is the name of the event's line.
    """

    body: Members | None
    field: str = "data"
    usage_after: bool = False
    done_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one server answers where the convention leaves room, or is violated.

    ``sources`` names the source of each property: a path in the server's repository with the
    version, or an issue. ``fingerprint`` may name the model: ``{model}``.
    """

    sources: tuple[str, ...]
    output_caps: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The fields with the output cap, in order; the first one that is present counts."""
    running_usage: RunningUsage
    reasoning_field: str
    opening: Opening
    calls: Calls
    calls_have_index: bool = True
    """False is possible for whole calls only."""
    finishes_with_text: bool = False
    """The finish reason is on the chunk with the last token, not on a separate one."""
    fingerprint: str | None = None
    choice_members: Members = field(default_factory=dict)
    """Added to each choice of a chunk."""
    delta_members: Members = field(default_factory=dict)
    """Added to each delta that lacks them."""
    finish_members: Members = field(default_factory=dict)
    """Added to the choice with the finish reason, streamed or not."""
    message_members: Members = field(default_factory=dict)
    """Added to a whole answer's message that lacks them."""
    whole_members: Members = field(default_factory=dict)
    usage_members: Members = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Headers of a stream."""
    closes_after_streams: bool = False
    """It closes the connection after a stream without announcing it."""
    in_band_error: InBandError
    refusal: Callable[[int, str], Members]
    """Makes the error body for a status and a message."""


def by_status(types: Mapping[int, str], other: str) -> Callable[[int], str]:
    """Make a function that returns the type of an error by its status."""
    return lambda status: types.get(status, other)
