"""The order in which a chat request is checked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spec.chat_completions.test_request_fields import TOOL
from tests.support.clients.raw_client import RawClient
from tests.support.live import Gateway


def body_of(model: str, **fields: Any) -> bytes:
    return json.dumps(
        {"model": model, "messages": [{"role": "user", "content": "hi"}], **fields}
    ).encode()


# Each request is wrong in its own way and in every way of those after it.
ORDER: list[tuple[str, bytes, bool, int, str | None]] = [
    ("the key before the size", b"x" * 2_000_000, False, 401, None),
    ("the key before the JSON", b"{", False, 401, None),
    ("the size before the JSON", b"{" * 2_000_000, True, 413, "request_too_large"),
    ("the JSON before the model", b'{"model": "acme/typo", ', True, 400, None),
    (
        "the model before its size and the fields",
        body_of("acme/typo", temperature=9, user="x" * 70_000),
        True,
        404,
        "model_not_found",
    ),
    (
        "the model's size before the fields",
        body_of("acme/demo-mini", temperature=9, user="x" * 70_000),
        True,
        413,
        "request_too_large",
    ),
    (
        "the fields before n and capabilities",
        body_of("acme/demo-mini", temperature=9, n=2, tools=[TOOL]),
        True,
        400,
        None,
    ),
    (
        "n before capabilities",
        body_of("acme/demo-mini", n=2, tools=[TOOL]),
        True,
        400,
        "unsupported_parameter",
    ),
    (
        "capabilities before the schema",
        body_of(
            "acme/demo-mini",
            response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {}}},
        ),
        True,
        400,
        "model_does_not_support_structured_output",
    ),
]


@pytest.mark.parametrize(
    ("body", "keyed", "status", "code"),
    [line[1:] for line in ORDER],
    ids=[line[0] for line in ORDER],
)
def test_checks_come_in_the_documented_order(
    gateway: Gateway, body: bytes, keyed: bool, status: int, code: str | None
) -> None:
    with RawClient(gateway) as client:
        client.head(f"content-length: {len(body)}", key=gateway.key if keyed else None)
        client.send(body if len(body) < 1_000_000 else body[:65_536])

        found, _, answer = client.answer()

    assert (found, json.loads(answer)["error"]["code"]) == (status, code)
