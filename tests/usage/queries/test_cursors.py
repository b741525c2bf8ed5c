"""Cursors: encoding is reversible, and any other text is refused."""

from __future__ import annotations

import base64
import struct
import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.errors import InvalidCursor
from usage.queries import cursors
from usage.queries.cursors import Cursor

MOMENTS = st.datetimes(timezones=st.just(UTC))
REQUEST_IDS = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=36
)
CURSORS = st.builds(Cursor, MOMENTS, REQUEST_IDS)


def packed(version: int, microseconds: int, request_id: bytes) -> str:
    raw = struct.pack(">Bq", version, microseconds) + request_id
    raw += struct.pack(">I", zlib.crc32(raw))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decoded(text: str) -> Cursor | None:
    """The cursor in ``text``, None when it is refused with the contract's error."""
    try:
        return cursors.decode(text)
    except InvalidCursor as error:
        refusal = (error.status, error.code, error.param)
    assert refusal == (400, "invalid_cursor", "cursor")
    return None


@given(CURSORS)
@example(Cursor(datetime(1, 1, 1, tzinfo=UTC), "r"))
@example(Cursor(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "req_" + "f" * 32))
def test_a_decoded_cursor_equals_the_encoded_one(cursor: Cursor) -> None:
    text = cursors.encode(cursor)

    assert cursors.decode(text) == cursor
    assert text.isascii()
    assert set(text).isdisjoint("+/=&?# ")


@given(st.text() | st.text("ABCxyz019-_=", max_size=70) | st.binary().map(repr))
@example("")
@example("=")
@example("AAAA")
@example("ä" * 20)
@example("A" * 100_000)
def test_anything_else_is_refused(text: str) -> None:
    cursor = decoded(text)

    assert cursor is None or cursors.encode(cursor) == text


@pytest.mark.parametrize(
    "text",
    [
        packed(1, 0, b"req_1"),
        packed(2, 2**63 - 1, b"req_1"),
        packed(2, -(2**63), b"req_1"),
        packed(2, 0, b""),
        packed(2, 0, b"req_\x00"),
        packed(2, 0, "req_ä".encode()),
        packed(2, 0, b"r" * 37),
        packed(2, 0, b"req_1") + "=",
        packed(2, 0, b"req_1")[:-1],
        packed(2, 0, b"req_12") + "\n",
    ],
)
def test_a_text_of_another_making_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor):
        cursors.decode(text)


@given(CURSORS, st.data())
def test_a_cursor_with_another_character_is_refused(cursor: Cursor, data: st.DataObject) -> None:
    text = cursors.encode(cursor)
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.sampled_from("AQgwBCDE019-_")) + text[place + 1 :]

    assert changed == text or decoded(changed) is None
