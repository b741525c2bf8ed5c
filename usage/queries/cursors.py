"""Export cursors: a position among the rows, as an opaque text.

Inference contract, "Cursor rules": a timestamp and a request id, nothing about the reader. The
text is base64url (RFC 4648, section 5, without padding) of a version byte, the microseconds since
1970 as a signed big-endian 64-bit number, the request id, and the CRC-32 of all that. The checksum
detects a text that was cut or mistyped; it is no secret, because a cursor grants no access.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.errors import InvalidCursor

_VERSION = 2
_HEAD = struct.Struct(">Bq")
_CHECK = struct.Struct(">I")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,36}")
_LONGEST = 66


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position right after the row with this time (UTC) and id."""

    occurred_at: datetime
    request_id: str


def encode(cursor: Cursor) -> str:
    """Return the text of ``cursor``."""
    microseconds = (cursor.occurred_at - _EPOCH) // _MICROSECOND
    packed = _HEAD.pack(_VERSION, microseconds) + cursor.request_id.encode("ascii")
    packed += _CHECK.pack(zlib.crc32(packed))
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")


def decode(text: str) -> Cursor:
    """Return the cursor that ``text`` encodes. Raises ``InvalidCursor`` for any other text."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        version, microseconds = _HEAD.unpack_from(packed)
        request_id = packed[_HEAD.size : -_CHECK.size]
        if version != _VERSION or _REQUEST_ID.fullmatch(request_id) is None:
            raise ValueError
        cursor = Cursor(_EPOCH + microseconds * _MICROSECOND, request_id.decode("ascii"))
        # Each position has one text: the checksum matches and unused trailing base64 bits are 0.
        if encode(cursor) != text:
            raise ValueError
    except (ValueError, struct.error, OverflowError):
        raise InvalidCursor(
            "'cursor' must be a 'next_cursor' from an earlier page, unchanged."
        ) from None
    return cursor
