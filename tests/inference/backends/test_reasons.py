"""A model server's reason for a refusal is kept in every dialect, without addresses and paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.backends.reasons import reason_in

NO = "maximum context length is 1024 tokens"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": NO, "type": "BadRequestError", "code": 400}}, NO),
        ({"error": NO, "error_type": "validation"}, NO),
        ({"object": "error", "message": NO, "code": 400}, NO),
        ({"detail": NO}, NO),
        ({"detail": {"error": {"message": NO}}}, NO),
        (
            {
                "detail": [
                    {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "required"},
                    {"type": "int_parsing", "loc": ["body", "n"], "msg": "not an integer"},
                ]
            },
            "messages.0.role: required; n: not an integer",
        ),
        ({"error": {"message": {"detail": NO}}}, NO),
        ({"error": {"code": 400}, "message": NO}, NO),
        ({"error": {"message": None}}, None),
        ({"detail": []}, None),
        ({"detail": [7, None, "x"]}, "x"),
        ([], None),
        (7, None),
        ({"error": {"message": " \n "}}, None),
    ],
)
def test_each_dialect_is_read(body: Any, reason: str | None) -> None:
    assert reason_in(json.dumps(body).encode(), "served") == reason


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "ContextWindowExceededError: too long. See https://docs.litellm.ai/x?a=1. Shorten it.",
            "ContextWindowExceededError: too long. See [address]. Shorten it.",
        ),
        ("refused (http://10.0.0.5:8000/v1) by 10.0.0.5:8000", "refused ([address]) by [address]"),
        ("redis://user:secret@cache/0 said no", "[address] said no"),
        ("version 1.2.3 is old, 1.2.3.4.5 too", "version 1.2.3 is old, 1.2.3.4.5 too"),
        ("no room in /models/served for it", "no room in the model for it"),
        ("Server is pinned to '/home/op/weights/tiny'.", "Server is pinned to '[path]'."),
        ("cannot read ~/models/a.gguf, C:\\models\\a.gguf", "cannot read [path], [path]"),
        ("no /v1/completions/x; see /messages/0/role and #/$defs/x/y", None),
        ("input and/or output of 3/4/5, a/b/c", None),
    ],
)
def test_addresses_and_paths_are_cut_out_of_a_reason(said: str, shown: str | None) -> None:
    body = json.dumps({"error": {"message": said}}).encode()

    assert reason_in(body, "/models/served") == (shown or said)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>no</html>",
        b"\xff",
        b"[" * 60_000,
        b'{"error":' * 9_000 + b'"x"' + b"}" * 9_000,
        b'{"error": "Traceback (most recent call last): ..."}',
    ],
)
def test_a_body_without_a_reason_shows_none(body: bytes) -> None:
    assert reason_in(body, "served") is None


@pytest.mark.parametrize(
    "piece", ["a://", "a.", "1.", "aaaaaaaaaaaaaaaaaaaa", "://", "http://x!?."]
)
def test_a_hostile_reason_is_cut_quickly(piece: str) -> None:
    """64 KiB of it takes milliseconds; a pattern that backtracks would take minutes."""
    said = piece * (64_000 // len(piece))

    shown = reason_in(json.dumps({"detail": said}).encode(), "served")

    assert shown is not None
    assert len(shown) <= 301
