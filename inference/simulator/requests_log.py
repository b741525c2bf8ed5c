"""The simulator's own account of what it was asked and what it did, to compare a ledger with."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

KEPT = 1000


class RequestEntry(msgspec.Struct):
    """One chat request. ``produced_tokens`` includes reasoning; ``sent_frames`` lacks ``[DONE]``.

    ``aborted``: the caller hung up before the end. ``received_headers`` are names only.
    """

    id: str
    model: str
    stream: bool
    received_fields: list[str]
    received_headers: list[str]
    body: dict[str, Any] | UnsetType
    status: int = 200
    prompt_tokens: int = 0
    produced_tokens: int = 0
    sent_frames: int = 0
    aborted: bool = False
    fault: str | None = None


class RequestLog:
    """The last 1000 requests with their bodies, and a file of JSON lines without them."""

    def __init__(self, path: Path | None) -> None:
        self.entries: deque[RequestEntry] = deque(maxlen=KEPT)
        self._file = path.open("ab", buffering=0) if path else None

    def append(self, entry: RequestEntry) -> None:
        """Notes a request that has ended."""
        self.entries.append(entry)
        if self._file:
            line = msgspec.structs.replace(entry, body=UNSET)
            self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        if self._file:
            self._file.close()
