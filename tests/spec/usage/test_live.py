"""The usage summary of real traffic through a real server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from accounts.models import Scope
from tests.support.gateways import Served
from tests.support.live import Gateway
from tests.support.served import another_gateway
from tests.support.until import until


def summary(gateway: Gateway, key: str = "", **query: str) -> Any:
    """The organization's summary of this month, read with ``key`` or with one minted for it."""
    answer = httpx2.get(
        f"{gateway.base_url}/usage",
        params=query,
        headers={"authorization": f"Bearer {key or gateway.mint(Scope.READ)}"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


@contextlib.contextmanager
def limited(gateway: Gateway, **limits: int) -> Iterator[str]:
    """Another key of the organization, with ``limits`` of its own; yields its id."""
    gateway.key = gateway.mint()
    key = gateway.organization.api_keys.latest("created_at")
    for name, limit in limits.items():
        setattr(key, name, limit)
    key.save()
    gateway.sees_changes()
    yield str(key.pk)


def test_the_reported_usage_of_an_answer_is_in_the_summary_at_once(gateway: Gateway) -> None:
    usages = []
    for model in ("running", "plain", "running"):
        answer = gateway.chat("say: Good morning to you", model)
        usages.append(answer.json()["usage"])
        found = summary(gateway, group_by="model,api_key,time", bucket="hour")

        assert found["requests"] == len(usages)
        tokens = found["tokens"]
        assert tokens["backend_reported_input"] == sum(each["prompt_tokens"] for each in usages)
        assert tokens["backend_reported_output"] == sum(
            each["completion_tokens"] for each in usages
        )
        assert tokens["delivered_output"] == tokens["backend_reported_output"]

    first, plain, third = usages
    demo = found["breakdowns"]["model"][0]
    assert demo["key"]["model_identifier"] == "acme/demo-8b"
    assert Decimal(demo["cost"]["total"]) == (
        (first["prompt_tokens"] + third["prompt_tokens"]) * Decimal("0.15")
        + (first["completion_tokens"] + third["completion_tokens"]) * Decimal("0.60")
    ) / Decimal(1_000_000)
    assert Decimal(found["cost"]["total"]) - Decimal(demo["cost"]["total"]) == (
        plain["prompt_tokens"] * Decimal("0.00000125")
        + plain["completion_tokens"] * Decimal("12.34567891")
    ) / Decimal(1_000_000)
    (key,) = found["breakdowns"]["api_key"]
    assert key["key"] == {
        "api_key_id": str(gateway.api_key.pk),
        "api_key_label": "test",
        "api_key_prefix": gateway.api_key.prefix,
    }


def test_refusals_by_a_limit_appear_within_seconds(gateway: Gateway) -> None:
    with limited(gateway, requests_per_minute=1) as slow_key:
        statuses = [gateway.chat("say: hello").status_code for _ in range(3)]
    with limited(gateway, tokens_per_minute=50):
        large = gateway.chat("say: hello", "mini", max_completion_tokens=500)

    assert statuses == [200, 429, 429]
    assert large.status_code == 429

    reading = gateway.mint(Scope.READ)

    def counted() -> Any:
        throttled = summary(gateway, reading)["throttled"]
        return throttled if throttled["total"] == 3 else None

    assert until(counted) == {
        "source": "rejection_counters",
        "total": 3,
        "by_limit_scope": [
            {"limit_scope": "requests", "model_identifier": "acme/demo-8b", "count": 2},
            {"limit_scope": "tokens", "model_identifier": "acme/demo-mini", "count": 1},
        ],
    }
    assert summary(gateway, api_key_id=slow_key)["throttled"]["total"] == 2
    assert summary(gateway, model="acme/demo-mini")["throttled"]["total"] == 1
    assert summary(gateway)["requests"] == 1


@pytest.mark.long
def test_counts_of_refusals_are_written_before_the_server_ends(
    gateway: Gateway, served: Served
) -> None:
    with (
        limited(gateway, requests_per_minute=1),
        another_gateway(gateway, served, SVC_THROTTLE_FLUSH_SECONDS="3600") as (_, base_url),
    ):
        body = {"model": "acme/demo-8b", "messages": [{"role": "user", "content": "say: hi"}]}
        statuses = [
            httpx2.post(
                f"{base_url}/chat/completions", json=body, headers=gateway.headers, timeout=60
            ).status_code
            for _ in range(2)
        ]
        assert statuses == [200, 429]
        assert summary(gateway)["throttled"]["total"] == 0

    assert summary(gateway)["throttled"]["total"] == 1
