"""The management API of a running server: what it makes works at once, and what it ends does not."""

from __future__ import annotations

from typing import Any

import httpx2

from accounts.keys import admin_keys
from tests.support.live import Gateway


def test_a_key_made_over_http_opens_chat_until_its_organization_is_disabled(
    gateway: Gateway,
) -> None:
    secret = admin_keys.mint("live").secret

    def manage(method: str, path: str, body: Any = None) -> httpx2.Response:
        return httpx2.request(
            method,
            f"{gateway.url}/manage/v1/{path}",
            json=body,
            headers={"authorization": f"Bearer {secret}"},
            timeout=30,
        )

    name = f"organizations/live-{gateway.organization.pk}"
    made = manage("PUT", name, {"requests_per_minute": "unlimited"})
    assert made.status_code == 201, made.text
    key = manage(
        "POST", "keys", {"organization": made.json()["name"], "scope": "inference", "label": "ci"}
    )
    assert key.status_code == 201, key.text
    bearer = {"authorization": f"Bearer {key.json()['key']}"}
    body = {"model": gateway.models["running"], "messages": [{"role": "user", "content": "Hi"}]}
    assert gateway.post(body, headers=bearer).status_code == 200
    assert manage("DELETE", name).json()["status"] == "disabled"
    gateway.sees_changes()
    assert gateway.post(body, headers=bearer).status_code == 401
    too_large = manage("PATCH", name, {"plan": "x" * 70_000})
    assert (too_large.status_code, too_large.json()["error"]["type"]) == (
        413,
        "invalid_request_error",
    )
