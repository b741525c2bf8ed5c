"""Damaged bodies of every JSON endpoint quickly become a request or a 400, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import ApiError
from inference.schema_subset import violations
from inference.wire import ChatRequest, model_of, parse_body
from speech.voices.clones.wire import read_request
from speech.wire import SpeechRequest, parse_message
from tests.support.cases.chat_requests import ACCEPTED, MINIMAL
from tests.support.fuzzing.mutations import damaged, within

EVERYTHING = {field: values[0] for field, values in ACCEPTED.items()}
CHATS = [json.dumps(MINIMAL).encode(), json.dumps(EVERYTHING).encode()]
SPEECHES = [b'{"voice": "ava", "input": "Hello.", "response_format": "wav", "model": "any"}']
CLONES = [b'{"name": "Anna", "audio_b64": "UklGRgAAAAA=", "consent": true}']
MESSAGES = [
    b'{"type": "start", "voice": {"id": "ava"}, "response_format": "opus"}',
    b'{"type": "text", "text": "H\\u00e9llo \\ud83d\\ude00."}',
    b'{"type": "done"}',
]
JSON_PIECES = [
    *(b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"null", b"true", b"NaN", b"-Infinity"),
    *(b"1e400", b"-0", b"1" * 400, b"[" * 200, b'{"":' * 70, b"\\ud800", b"\\u0000", b"\xff"),
    *(b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\x00", b" " * 100, b"1.", b"0x1", b"//", b"'"),
]


def read_chat(body: bytes) -> None:
    fields = parse_body(body)
    model_of(fields)
    request = ChatRequest.from_fields(fields)
    if (named := request.json_schema) is not None:
        violations(named.schema)


def read_message(body: bytes) -> None:
    parse_message(body.decode(errors="surrogateescape"))


READERS = [
    pytest.param(read_chat, CHATS, id="chat"),
    pytest.param(SpeechRequest.from_body, SPEECHES, id="speech"),
    pytest.param(read_request, CLONES, id="clone"),
    pytest.param(read_message, MESSAGES, id="message"),
]


def read_or_refuse(read: Callable[[bytes], Any], body: bytes) -> None:
    refused: ApiError | None = None
    with within(0.25):
        try:
            read(body)
        except ApiError as error:
            refused = error
    assert refused is None or (refused.status == 400 and refused.message)


def test_the_bodies_are_valid_before_they_are_damaged() -> None:
    for read, bodies in ((read_chat, CHATS), (SpeechRequest.from_body, SPEECHES)):
        for body in bodies:
            read(body)
    for message in MESSAGES:
        read_message(message)
    with pytest.raises(ApiError, match="'audio_b64'"):
        read_request(CLONES[0])  # a clip is too long to stand above


@pytest.mark.parametrize(("read", "good"), READERS)
@given(data=st.data())
def test_a_damaged_body_is_a_request_or_a_400(
    read: Callable[[bytes], Any], good: list[bytes], data: st.DataObject
) -> None:
    read_or_refuse(read, data.draw(damaged(good, JSON_PIECES)))


@pytest.mark.parametrize(("read", "good"), READERS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"a":' * 100_000,
        b'{"model": ' + b"1" * 1_000_000 + b"}",
        b'{"' + b"\\u00e9" * 100_000 + b'": 1}',
        b"{" + b",".join(b'"%d": 0' % number for number in range(50_000)) + b"}",
        b'{"input": "' + b"\\ud83d" * 100_000 + b'"}',
    ],
    ids=["arrays", "objects", "digits", "name", "fields", "surrogates"],
)
def test_a_huge_body_is_refused_quickly(
    read: Callable[[bytes], Any], good: list[bytes], body: bytes
) -> None:
    read_or_refuse(read, body)
