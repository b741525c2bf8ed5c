"""Identifiers made by the server.

Request ids are ``req_`` and a UUIDv7 (RFC 9562, section 5.7) in 32 hex digits, so they sort by
time of arrival.
"""

from __future__ import annotations

import os
import time
import uuid

NIL_UUID = uuid.UUID(int=0)
"""The key id of unattributed requests, which have no key (RFC 9562, section 5.9)."""


_VARIANTS = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
"""The digit that begins with the variant's two bits, ``10``, and two random ones."""

_IDS_IN_ONE_READ = 256
_RANDOM_BYTES = 10
_random: list[bytes] = []
"""Random bytes for the next ids, each used once; ``list.pop`` is safe in threads."""


def uuid7_hex() -> str:
    """A UUIDv7 as 32 hex digits: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = _random_bytes().hex()
    return f"{milliseconds:012x}7{random[:3]}{_VARIANTS[random[3]]}{random[4:19]}"


def _random_bytes() -> bytes:
    """Return random bytes that no other id has; the kernel is read for many ids at once."""
    try:
        return _random.pop()
    except IndexError:
        read = os.urandom(_RANDOM_BYTES * _IDS_IN_ONE_READ)
        cuts = range(_RANDOM_BYTES, len(read), _RANDOM_BYTES)
        _random.extend(read[start : start + _RANDOM_BYTES] for start in cuts)
        return read[:_RANDOM_BYTES]


# A forked process must not make the ids of its parent again.
os.register_at_fork(after_in_child=_random.clear)


def request_id() -> str:
    """A new request id, as sent in ``x-request-id`` and written to the ledger."""
    return "req_" + uuid7_hex()
