"""The simulated speech server's own log of its requests, for tests."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

KEPT = 1000


class SpeechEntry(msgspec.Struct):
    """One request. ``received_headers`` are names only; ``clip_sha256`` is of the reference clip.

    ``aborted``: the client disconnected before the end. In ``body`` a clip is replaced by its length.
    """

    id: str
    kind: str
    """``speech``, ``captions``, ``upload`` or ``deletion``."""
    voice: str
    received_headers: list[str]
    body: dict[str, Any]
    status: int = 200
    sent_bytes: int = 0
    audio_ms: int = 0
    clip_sha256: str | None = None
    aborted: bool = False
    fault: str | None = None


class SpeechLog:
    """The last 1000 requests that have ended, and the number of running ones."""

    def __init__(self) -> None:
        self.entries: deque[SpeechEntry] = deque(maxlen=KEPT)
        self.running = 0
        self.most_running = 0

    def began(self) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)

    def ended(self, entry: SpeechEntry) -> None:
        self.running -= 1
        self.entries.append(entry)

    def forget(self) -> None:
        self.entries.clear()
        self.most_running = self.running
