"""The whole WebSocket table."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.websocket import deflate, frames, texts
from tests.conformance.websocket.case import Case


def cases() -> Iterator[Case]:
    """Yield every case."""
    yield from frames.cases()
    yield from texts.cases()
    yield from deflate.cases()
