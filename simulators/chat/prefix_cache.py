"""What a simulated server keeps of prompts: the messages that they began with, by ``cache_salt``.

A real server keeps blocks of tokens; whole messages are enough to see who shares the cache with whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

_KEPT: Final = 10_000
"""Beginnings; the oldest is dropped first."""


class PrefixCache:
    def __init__(self) -> None:
        self._kept: dict[bytes, None] = {}

    def take(
        self, salt: object, messages: Sequence[Mapping[str, Any]]
    ) -> Sequence[Mapping[str, Any]]:
        """Return the first of ``messages`` that are kept under ``salt``, and keep all of them."""
        mark = blake2b(repr(salt).encode(), digest_size=16).digest()
        known, unbroken = 0, True
        for number, message in enumerate(messages, 1):
            mark = blake2b(mark + msgspec.json.encode(message), digest_size=16).digest()
            unbroken = unbroken and mark in self._kept
            if unbroken:
                known = number
            self._kept.pop(mark, None)
            self._kept[mark] = None
        while len(self._kept) > _KEPT:
            del self._kept[next(iter(self._kept))]
        return messages[:known]
