"""What a dialect consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from inference.dialects import RunningUsage

Members = Mapping[str, Any]


class Opening(StrEnum):
    """What stands in the first chunk of a stream."""

    EMPTY_CONTENT = "empty content"
    """The role and an empty ``content``."""
    NULL_CONTENT = "null content"
    """The role and a null ``content``."""
    WITH_FIRST_TOKEN = "with the first token"  # noqa: S105  # no password
    """There is no chunk of its own: the role comes with the first token."""


class Calls(StrEnum):
    """How a streamed tool call is cut."""

    PIECES = "pieces"
    """As the convention has it: id, type and name first, then pieces of the arguments."""
    NULLS = "nulls"
    """The later pieces say ``id: null``, ``name: null`` and the type again."""
    EMPTY_NAMES = "empty names"
    """The later pieces say ``name: ""`` and the type again."""
    WHOLE = "whole"
    """Each call comes in one piece."""


@dataclass(frozen=True, slots=True)
class InBandError:
    """What a stream says when generation fails in its middle, and how it ends then.

    Without a ``body`` it is an empty chunk. ``field`` is the name of the event's line.
    """

    body: Members | None
    field: str = "data"
    usage_after: bool = False
    done_after: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one server answers where the convention leaves room, or is not kept.

    ``sources`` names where each habit was read: a path in the server's repository with the
    version, or an issue. ``fingerprint`` may name the model: ``{model}``.
    """

    sources: tuple[str, ...]
    output_caps: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The fields that it reads the output cap from; the first that is given wins."""
    running_usage: RunningUsage
    reasoning_field: str
    opening: Opening
    calls: Calls
    calls_have_index: bool = True
    """False is for whole calls only."""
    finishes_with_text: bool = False
    """The finish reason stands on the chunk with the last token, not on one of its own."""
    fingerprint: str | None = None
    choice_members: Members = field(default_factory=dict)
    """Of each choice of a chunk."""
    delta_members: Members = field(default_factory=dict)
    """Of each delta, where the delta does not have them."""
    finish_members: Members = field(default_factory=dict)
    """Of the choice with the finish reason, streamed or not."""
    message_members: Members = field(default_factory=dict)
    """Of a whole answer's message, where it does not have them."""
    whole_members: Members = field(default_factory=dict)
    usage_members: Members = field(default_factory=dict)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Of a stream."""
    closes_after_streams: bool = False
    """It closes the connection after a stream, and does not say so."""
    in_band_error: InBandError
    refusal: Callable[[int, str], Members]
    """The error body for a status and a message."""


def by_status(types: Mapping[int, str], other: str) -> Callable[[int], str]:
    """The type of an error by its status."""
    return lambda status: types.get(status, other)
