"""The management API of a running server: what it makes works at once, and what it ends does not."""

from __future__ import annotations

from typing import Any

import httpx2

from accounts.keys import admin_keys
from tests.support.live import Gateway
from tests.support.live_catalog import served_models
from tests.support.until import until


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


def test_a_catalog_that_is_sent_is_served_and_may_be_larger_than_other_bodies(
    gateway: Gateway,
) -> None:
    headers = {"authorization": f"Bearer {admin_keys.mint('live').secret}"}
    url = f"{gateway.url}/manage/v1/catalog"
    shown = httpx2.get(url, headers=headers, timeout=30)
    assert (shown.status_code, shown.headers["cache-control"]) == (200, "no-store")
    served = {each["id"]: each for each in shown.json()["models"]}[gateway.models["running"]]
    name = f"live/{gateway.organization.pk}"
    document = {
        "models": [{**served, "id": name}],
        "voices": [{"id": f"voice-{number}", "engine_voice": "en"} for number in range(2_000)],
    }
    planned = httpx2.put(f"{url}?dry_run=true", json=document, headers=headers, timeout=240)
    assert planned.status_code == 200, planned.text
    assert len(planned.json()["changes"]) > 2_000

    document.pop("voices")
    changed = httpx2.put(url, json=document, headers=headers, timeout=30)
    assert changed.json()["changes"][-1] == f"published {name}"
    until(lambda: name in served_models(gateway))
    body = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
    assert gateway.post(body).status_code == 200
    too_large = {"backends": [{"name": "x" * 1_100_000, "base_url": "http://a/v1"}]}
    assert httpx2.put(url, json=too_large, headers=headers, timeout=30).status_code == 413
