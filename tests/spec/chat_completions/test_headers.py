"""The contract's header tables of ``POST /v1/chat/completions``."""

from __future__ import annotations

import re

import httpx2
import pytest

from tests.support.live import Gateway

REQUEST_ID = re.compile(r"req_[0-9a-f]{32}")
STREAM_ONLY = {"cache-control": "no-cache", "connection": "keep-alive", "x-accel-buffering": "no"}


def quota_headers(answer: httpx2.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith(("retry-after", "x-ratelimit-"))]


@pytest.mark.parametrize(("text", "status"), [("say: ok", 200), ("[[sim fault=status@400]]", 400)])
def test_a_whole_answer_is_json_with_a_request_id_and_no_quota_headers(
    gateway: Gateway, text: str, status: int
) -> None:
    answer = gateway.chat(text)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/json"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert REQUEST_ID.fullmatch(answer.headers["x-request-id"])
    assert not quota_headers(answer)
    assert not {"cache-control", "x-accel-buffering", "server"} & set(answer.headers)


def test_a_stream_has_the_stream_headers(gateway: Gateway) -> None:
    answer = gateway.chat("say: ok", stream=True)

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert {name: answer.headers[name] for name in STREAM_ONLY} == STREAM_ONLY
    assert REQUEST_ID.fullmatch(answer.headers["x-request-id"])
    assert "content-length" not in answer.headers
    assert "content-encoding" not in answer.headers
    assert not quota_headers(answer)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/chat/completions"), ("DELETE", "/v1/models/acme/demo-8b")]
)
def test_every_refusal_carries_a_request_id_of_the_servers_own(
    gateway: Gateway, method: str, path: str
) -> None:
    headers = {"x-request-id": "req_" + "0" * 32}
    answer = httpx2.request(method, f"{gateway.url}{path}", headers=headers, timeout=60)

    assert answer.status_code in (401, 404, 405)
    assert REQUEST_ID.fullmatch(answer.headers["x-request-id"])
    assert answer.headers["x-request-id"] != headers["x-request-id"]


def test_a_wrong_method_gets_the_allowed_one(gateway: Gateway) -> None:
    answer = gateway.get("/chat/completions")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_key_counts_only_in_the_authorization_header(gateway: Gateway) -> None:
    answer = httpx2.post(
        f"{gateway.base_url}/chat/completions?api_key={gateway.key}&key={gateway.key}",
        headers={"api-key": gateway.key, "x-api-key": gateway.key},
        json={"model": "acme/demo-8b", "messages": [{"role": "user", "content": "hi"}]},
        timeout=60,
    )

    assert answer.status_code == 401


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", ""])
def test_the_body_is_json_whatever_the_content_type_says(
    gateway: Gateway, content_type: str
) -> None:
    body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: ok"}]}

    assert gateway.post(body, headers={"content-type": content_type}).status_code == 200
