"""Errors of the speech surface."""

from __future__ import annotations

from typing import Any


def error_of(answer: Any) -> tuple[int, str, str]:
    """Status, ``type`` and ``message``, after the shape was checked."""
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type"}
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"].startswith("req_")
    return answer.status_code, body["error"]["type"], body["error"]["message"]


def kind_of(answer: Any) -> tuple[int, str]:
    """Status and ``type`` of an error that has a message."""
    status, kind, message = error_of(answer)
    assert message
    return status, kind
