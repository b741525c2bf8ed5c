"""Whose requests share what a model server keeps of prompts, through the gateway."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accounts.keys.keys import mint
from accounts.models import Organization, Scope
from tests.support.live import Gateway
from tests.support.live_catalog import backend, publish
from tests.support.model_servers.simulator import RunningSimulator, running_simulator
from tests.support.until import until
from usage.models import UsageRow


@pytest.fixture(scope="module")
def caching() -> Iterator[RunningSimulator]:
    """A model server that keeps prompts and reports how many of their tokens it had."""
    with running_simulator("--prefix-cache") as simulator:
        yield simulator


def another_organization(gateway: Gateway) -> Gateway:
    organization = Organization.objects.create(
        name=f"test {uuid.uuid4()}", requests_per_minute=None, tokens_per_minute=None
    )
    minted = mint(organization, Scope.INFERENCE, "test")
    return replace(gateway, organization=organization, api_key=minted.api_key, key=minted.secret)


def published_on(gateway: Gateway, server: RunningSimulator, prefix_cache: str) -> str:
    base_url = f"{server.url}/v1"
    return publish(
        gateway, backend(gateway, base_url=base_url, prefix_cache=prefix_cache)
    ).identifier


def ours(caller: Gateway, model: str, count: int) -> list[UsageRow]:
    """The rows that an organization has of ``model``, in the order of their admissions."""
    rows = UsageRow.objects.filter(organization_id=caller.organization.pk, model_identifier=model)
    return until(
        lambda: found if len(found := list(rows.order_by("request_id"))) == count else None
    )


SHARING = {
    # prefix_cache: tokens are kept for (the same organization, another one)
    "organization": (True, False),
    "shared": (True, True),
    "none": (False, False),
}


def test_a_server_that_reports_no_cached_tokens_leaves_none_on_the_row(gateway: Gateway) -> None:
    answer = gateway.chat("say: ok")

    assert "prompt_tokens_details" not in answer.json()["usage"]
    assert gateway.row(answer.headers["x-request-id"]).cached_input_tokens is None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("prefix_cache", SHARING)
def test_who_is_told_of_cached_tokens(
    gateway: Gateway, caching: RunningSimulator, prefix_cache: str, stream: bool
) -> None:
    model = published_on(gateway, caching, prefix_cache)
    other = another_organization(gateway)
    text = f"The same secret prompt {uuid.uuid4()} of two organizations [[sim tokens=3]]"

    def cached(caller: Gateway) -> int:
        asked: Any = {
            "model": model,
            "messages": [{"role": "user", "content": text}],
            "extra_body": {"cache_salt": "mine"},
        }
        with caller.openai() as client:
            if stream:
                chunks = list(
                    client.chat.completions.create(
                        **asked, stream=True, stream_options={"include_usage": True}
                    )
                )
                usage = chunks[-1].usage
            else:
                usage = client.chat.completions.create(**asked).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        return usage.prompt_tokens_details.cached_tokens or 0

    assert cached(gateway) == 0
    found = (cached(gateway), cached(other))
    assert tuple(each > 0 for each in found) == SHARING[prefix_cache]
    stored = [row.cached_input_tokens for row in ours(gateway, model, 2)]
    assert stored == [0, found[0]]
    assert [row.cached_input_tokens for row in ours(other, model, 1)] == [found[1]]

    sent = [each for each in caching.requests() if text in str(each["body"])]
    salts = [each["body"].get("cache_salt") for each in sent]
    assert "mine" not in salts, "a caller's own salt is dropped"
    assert len(set(salts)) == {"organization": 2, "shared": 1, "none": 3}[prefix_cache]
    assert (salts == [None] * 3) is (prefix_cache == "shared")
