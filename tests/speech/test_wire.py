"""Requests and messages of clients: errors name every wrong field and quote nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.errors import InvalidField
from speech.audio.encoding import AudioFormat
from speech.wire import (
    LARGEST_BODY,
    LARGEST_MESSAGE,
    LONGEST_INPUT,
    LONGEST_INSTRUCTIONS,
    Cancel,
    Done,
    Flush,
    SpeechRequest,
    Start,
    StreamFormat,
    Text,
    parse_message,
)

LONGEST = "\U0001f600" * LONGEST_INSTRUCTIONS


def request(**fields: Any) -> SpeechRequest:
    return SpeechRequest.from_body(json.dumps({"voice": "ava", "input": "Hi", **fields}).encode())


def refused(body: bytes) -> InvalidField:
    with pytest.raises(InvalidField) as refusal:
        SpeechRequest.from_body(body)
    return refusal.value


@pytest.mark.parametrize(
    ("fields", "column", "value"),
    [
        *(({"response_format": each.value}, "response_format", each) for each in AudioFormat),
        *(({"stream_format": each.value}, "stream_format", each) for each in StreamFormat),
        ({"voice": {"id": "ava", "more": 1}}, "voice", "ava"),
        ({"instructions": " Whisper. "}, "instructions", " Whisper. "),
        ({"instructions": LONGEST}, "instructions", LONGEST),
        ({"instructions": " \n"}, "instructions", ""),
    ],
)
def test_a_field_of_the_contract_has_its_value(
    fields: dict[str, Any], column: str, value: Any
) -> None:
    assert getattr(request(**fields), column) == value


@pytest.mark.parametrize(
    "fields",
    [
        *({"model": model} for model in ("tts-1", "", None, 7, {"any": "thing"})),
        {"seed": 3},
        dict.fromkeys(("response_format", "speed", "instructions", "stream_format")),
    ],
    ids=str,
)
def test_the_model_and_unknown_fields_are_ignored_and_null_means_absent(
    fields: dict[str, Any],
) -> None:
    assert request(**fields) == request() == SpeechRequest("ava", "Hi", AudioFormat.WAV)


@pytest.mark.parametrize("speed", [0.25, 1, 1.0, 2, 4.0])
def test_every_speed_of_the_convention(speed: float) -> None:
    assert request(speed=speed).speed == speed
    start = parse_message(json.dumps({"type": "start", "voice": "ava", "speed": speed}))
    assert isinstance(start, Start)
    assert start.speed == speed


def test_of_a_repeated_name_the_last_value_wins() -> None:
    body = b'{"voice": "a", "input": "Hi", "voice": "b"}'
    assert SpeechRequest.from_body(body).voice == "b"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"voice": None}, "voice"),
        ({"voice": 7}, "voice"),
        ({"voice": ["ava"]}, "voice"),
        ({"voice": ""}, "voice"),
        ({"voice": " \t"}, "voice"),
        ({"voice": {}}, "voice.id"),
        ({"voice": {"id": None}}, "voice.id"),
        ({"voice": {"id": ""}}, "voice.id"),
        ({"input": None}, "input"),
        ({"input": 1.5}, "input"),
        ({"input": True}, "input"),
        ({"input": ""}, "input"),
        ({"input": " \n\u2003"}, "input"),
        ({"input": "x" * (LONGEST_INPUT + 1)}, "input"),
        ({"speed": 0.2499}, "speed"),
        ({"speed": 4.0001}, "speed"),
        ({"speed": 0}, "speed"),
        ({"speed": -1}, "speed"),
        ({"speed": 10**30}, "speed"),
        ({"speed": "1.0"}, "speed"),
        ({"speed": "fast"}, "speed"),
        ({"speed": True}, "speed"),
        ({"speed": [1]}, "speed"),
        ({"instructions": 7}, "instructions"),
        ({"instructions": ["a"]}, "instructions"),
        ({"instructions": "x" * (LONGEST_INSTRUCTIONS + 1)}, "instructions"),
        ({"stream_format": "mp3"}, "stream_format"),
        ({"stream_format": 1}, "stream_format"),
        ({"stream_format": {}}, "stream_format"),
        ({"response_format": "aac"}, "response_format"),
        ({"response_format": "WAV"}, "response_format"),
        ({"response_format": 1}, "response_format"),
        ({"response_format": {}}, "response_format"),
        ({"response_format": ["wav"]}, "response_format"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], param: str) -> None:
    refusal = refused(json.dumps({"voice": "ava", "input": "Hi", **fields}).encode())

    assert refusal.param == param
    assert f"'{param}'" in refusal.message


@pytest.mark.parametrize("name", ["voice", "input"])
def test_a_required_field_that_is_missing_is_named(name: str) -> None:
    fields = {"voice": "ava", "input": "Hi"}
    del fields[name]

    assert refused(json.dumps(fields).encode()).param == name


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b'"text"', b"null", b"{", b'{"voice": "ava", "input": "Hi"} x',
        b'{"voice": "ava", "input": NaN}', b'{"voice": "ava", "input": "\\ud800"}',
        b'{"voice": "ava", "input": "\xff"}', b'{"voice": "ava", "input": "Hi", "x": 1e999}',
        b'{"voice": "ava", "input": "Hi", "x": ' + b"[" * 100 + b"]" * 100 + b"}",
        b'{"x": ' + b"[" * 20_000, b"\xef\xbb\xbf{}",
    ],
)  # fmt: skip
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes) -> None:
    assert refused(body).status == 400


def test_the_longest_input_is_counted_in_code_points() -> None:
    longest = "\U0001f600" * LONGEST_INPUT

    assert request(input=longest).input == longest
    escaped = json.dumps({"voice": "ava", "input": longest})
    assert "\\ud83d" in escaped
    assert len(escaped) < LARGEST_BODY
    assert len(json.dumps({"type": "text", "text": longest})) < LARGEST_MESSAGE


@pytest.mark.parametrize(
    ("message", "meaning"),
    [
        ({"type": "start", "voice": "ava"}, Start("ava", AudioFormat.WAV)),
        (
            {"type": "start", "voice": "ava", "response_format": "mp3", "model": "x"},
            Start("ava", AudioFormat.MP3),
        ),
        ({"type": "text", "text": "Hi "}, Text("Hi ")),
        ({"type": "text", "text": ""}, Text("")),
        ({"type": "done", "extra": 1}, Done()),
        ({"type": "flush"}, Flush()),
        ({"type": "cancel"}, Cancel()),
    ],
)
def test_the_messages_of_a_session(message: dict[str, Any], meaning: object) -> None:
    assert parse_message(json.dumps(message)) == meaning


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({}, "type"),
        ({"type": "speak"}, "type"),
        ({"type": None}, "type"),
        ({"type": ["start"]}, "type"),
        ({"type": "start"}, "voice"),
        ({"type": "start", "voice": "ava", "response_format": "ogg"}, "response_format"),
        ({"type": "text"}, "text"),
        ({"type": "text", "text": None}, "text"),
        ({"type": "text", "text": "x" * (LONGEST_INPUT + 1)}, "text"),
    ],
)
def test_a_wrong_message_names_its_field(message: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        parse_message(json.dumps(message))

    assert refusal.value.param == param
