"""The trace of a client, as W3C's Trace Context writes it: ``traceparent`` and ``tracestate``.

It is the one thing of a client's head that a model server gets, unchanged, so that a trace that begins in
the client goes on there. What is not valid is dropped (https://www.w3.org/TR/trace-context/).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

TRACEPARENT: Final = b"traceparent"
_TRACESTATE: Final = b"tracestate"

_PARENT: Final = re.compile(
    rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-[\x21-\x7e]{0,200})?"
)
_MEMBER: Final = re.compile(
    rb"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MOST_MEMBERS: Final = 32
_LARGEST_STATE: Final = 4096
"""Bytes of a ``tracestate``: systems have to pass on 512 (section 3.3.1.5)."""
_LENGTH_OF_VERSION_00: Final = 55


class TraceContext(msgspec.Struct, frozen=True):
    """A valid trace context: the parent's own words, and the trace's id in them."""

    parent: str
    trace_id: str
    state: str

    @property
    def lines(self) -> bytes:
        """The header lines that pass it on unchanged."""
        lines = f"traceparent: {self.parent}\r\n"
        if self.state:
            lines += f"tracestate: {self.state}\r\n"
        return lines.encode("ascii")

    def headers(self) -> dict[str, str]:
        """The headers by name, as libraries of traces read them."""
        state = {"tracestate": self.state} if self.state else {}
        return {"traceparent": self.parent, **state}


def read(headers: Iterable[tuple[bytes, bytes]]) -> TraceContext | None:
    """Return the trace context of ASGI ``headers``; None for none, an invalid one, or two.

    A ``tracestate`` that is not valid is dropped alone (section 3.3.1).
    """
    parents: list[bytes] = []
    states: list[bytes] = []
    for name, value in headers:
        if name == TRACEPARENT:
            parents.append(value.strip(b" \t"))
        elif name == _TRACESTATE:
            states.append(value)
    if len(parents) != 1:
        return None
    (parent,) = parents
    form = _PARENT.fullmatch(parent)
    if form is None or not _is_meaningful(form, len(parent)):
        return None
    return TraceContext(parent.decode("ascii"), form[2].decode("ascii"), _state(states))


def _is_meaningful(form: re.Match[bytes], length: int) -> bool:
    version, trace_id, parent_id = form[1], form[2], form[3]
    if version == b"ff" or not trace_id.strip(b"0") or not parent_id.strip(b"0"):
        return False
    # Later versions may be longer (section 3.2.4).
    return version != b"00" or length == _LENGTH_OF_VERSION_00


def _state(values: list[bytes]) -> str:
    """Several headers are one list (section 3.3.1.1)."""
    state = b",".join(values).strip(b" \t")
    members = [member.strip(b" \t") for member in state.split(b",")]
    filled = [member for member in members if member]
    keys = {member.partition(b"=")[0] for member in filled}
    is_valid = (
        len(state) <= _LARGEST_STATE
        and len(filled) <= _MOST_MEMBERS
        and len(keys) == len(filled)
        and all(map(_MEMBER.fullmatch, filled))
    )
    return state.decode("ascii") if is_valid and filled else ""
