"""A conversation through a gateway with two servers of its model: it stays where it began."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support import live_catalog
from tests.support.gateways import Served
from tests.support.live import Gateway, fetch
from tests.support.metrics import Metrics, metrics
from tests.support.served import another_gateway
from tests.support.until import until

pytestmark = [pytest.mark.live, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_later_turns_go_where_the_conversation_is(gateway: Gateway, stream: bool) -> None:
    model = live_catalog.publish(
        gateway, live_catalog.backend(gateway), live_catalog.backend(gateway)
    ).identifier
    before = metrics(gateway)

    messages = [{"role": "user", "content": f"Read this, {stream}. " + "It is long. " * 200}]
    for turn in range(4):
        answer = gateway.post({"model": model, "messages": messages, "stream": stream})
        assert answer.status_code == 200
        messages.append({"role": "assistant", "content": f"The answer {turn}."})
        messages.append({"role": "user", "content": "And then?"})

    after = metrics(gateway)
    found = {
        reason: after.sum("svc_placements_total", reason=reason)
        - before.sum("svc_placements_total", reason=reason)
        for reason in ("warm", "home", "load", "moved")
    }
    assert found == {"warm": 3, "home": 0, "load": 1, "moved": 0}
    assert [row.outcome for row in gateway.rows_when(4)] == ["success"] * 4


@pytest.mark.redis
def test_another_host_knows_where_a_conversation_began(gateway: Gateway, served: Served) -> None:
    model = live_catalog.publish(
        gateway, live_catalog.backend(gateway), live_catalog.backend(gateway)
    ).identifier
    redis = {"REDIS_URL": os.environ["SVC_TEST_REDIS_URL"]}

    def turn(url: str, conversation: int, *, is_later: bool = False) -> None:
        question = f"Read text {conversation}. " + "It is long. " * 200
        messages = [{"role": "user", "content": question}]
        if is_later:
            messages += [{"role": "assistant", "content": "Yes."}, {"role": "user", "content": "?"}]
        body: Any = {"model": model, "messages": messages}
        answer = fetch(f"{url}/chat/completions", "POST", json=body, key=gateway.key)
        assert answer.status_code == 200

    def warm(url: str) -> float:
        found = Metrics(fetch(url.removesuffix("/v1") + "/metrics").text)
        return found.sum("svc_placements_total", reason="warm")

    with (
        another_gateway(gateway, served, **redis) as (_, first),
        another_gateway(gateway, served, **redis) as (_, second),
    ):
        for conversation in range(60):
            turn(first, conversation)
        # Told last, so once one of these is known, all before them are; each is asked once.
        lately = iter(range(20, 60))

        def has_heard() -> bool:
            turn(second, next(lately), is_later=True)
            return warm(second) > 0

        until(has_heard)
        before = warm(second)
        for conversation in range(20):
            turn(second, conversation, is_later=True)
        assert warm(second) - before == 20
