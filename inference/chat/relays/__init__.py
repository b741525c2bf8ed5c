"""Relays: they rewrite a backend's answer in the form of the contract, and count it.

``stream`` relays server-sent events, ``whole`` one JSON body; ``tool_calls`` has the rules of their
fragments.
"""

from __future__ import annotations

from typing import Protocol

from core.errors import BackendError, BackendProtocolError
from inference.chat.meter import Meter
from inference.wire.answers import FAILED_REASONS, FINISH_ALIASES, FINISH_REASONS


class Relay(Protocol):
    """Turns the bytes of a backend's answer into the client's, and updates the meter.

    ``done``: nothing more has to be read. ``finished``: the answer has a finish reason. ``unsent``:
    the client's bytes that were made before ``feed`` raised.
    """

    done: bool
    finished: bool
    unsent: bytes

    @property
    def is_all_reported(self) -> bool:
        """Whether running usage contains all that came, so that its counts are what is billed."""

    def feed(self, read: bytes) -> bytes:
        """Take the next bytes, or ``b""`` for the end; return the client's bytes, perhaps none.

        Raises ``BackendProtocolError`` for what is not an answer, is larger than the bounds, or has
        invalid token counts, and ``BackendError`` for an answer that reports a failure.
        """

    def last(self) -> bytes:
        """Return the client's last bytes, with the usage; sent when the row is durable."""


def finish_reason(reason: str) -> str:
    """Return ``reason`` in the convention's spelling.

    Raises ``BackendError`` for a reason that means a failure, ``BackendProtocolError`` for an
    unknown one.
    """
    if reason in FINISH_REASONS:
        return reason
    if reason in FAILED_REASONS:
        raise BackendError().because("its finish reason is a failure")
    if (known := FINISH_ALIASES.get(reason)) is None:
        raise BackendProtocolError("The model server sent an unknown finish reason.")
    return known


def completion_id(request_id: str) -> str:
    """Make the answer's id, in the convention's form, from the request id."""
    return "chatcmpl-" + request_id.removeprefix("req_")


def call_id(meter: Meter, index: int) -> str:
    """Make an id for a tool call that came without one."""
    return f"call_{meter.identity.request_id[-24:]}{index}"
