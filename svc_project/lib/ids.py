"""Identifiers that the server makes.

Request ids are ``req_`` and a UUIDv7 (RFC 9562, section 5.7) in 32 hex digits, so that sorting by
id is sorting by time of arrival.
"""

from __future__ import annotations

import os
import time
import uuid

NIL_UUID = uuid.UUID(int=0)
"""Stands where a key would: requests without a key are unattributed (RFC 9562, section 5.9)."""


def uuid7_hex() -> str:
    """A UUIDv7 as 32 hex digits: 48 bits of milliseconds, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds << 80) | (0x7 << 76) | ((random >> 68) << 64)
    value |= (0b10 << 62) | (random & 0x3FFF_FFFF_FFFF_FFFF)
    return f"{value:032x}"


def request_id() -> str:
    """A new request id, as sent in ``x-request-id`` and written to the ledger."""
    return "req_" + uuid7_hex()
