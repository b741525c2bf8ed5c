"""The simulator's own log of its requests and answers, for comparison with a ledger."""

from __future__ import annotations

from collections import deque
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

KEPT = 1000


class RequestEntry(msgspec.Struct):
    """One chat request. ``produced_tokens`` includes reasoning; ``sent_frames`` lacks ``[DONE]``.

    ``aborted``: the client disconnected before the end. ``received_headers`` are names only.
    ``prompt_sha256``: the hash of the last message's text, in hex, only in the file: it
    distinguishes requests without their bodies.
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
    prompt_sha256: str | None = None


class RequestLog:
    """The last 1000 requests with their bodies, and a file of JSON lines without them."""

    def __init__(self, path: Path | None) -> None:
        self.entries: deque[RequestEntry] = deque(maxlen=KEPT)
        self._file = path.open("ab", buffering=0) if path else None

    def append(self, entry: RequestEntry) -> None:
        """Record a request that has ended."""
        self.entries.append(entry)
        if self._file:
            line = msgspec.structs.replace(entry, body=UNSET, prompt_sha256=_prompt_sha256(entry))
            self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        if self._file:
            self._file.close()


def _prompt_sha256(entry: RequestEntry) -> str | None:
    match entry.body:
        case {"messages": [*_, {"content": str(text)}]}:
            return sha256(text.encode()).hexdigest()
    return None
