"""A conversation through a gateway with two servers of its model: it stays where it began."""

from __future__ import annotations

import pytest

from tests.support import live_catalog
from tests.support.live import Gateway
from tests.support.metrics import metrics

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
