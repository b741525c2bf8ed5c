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
