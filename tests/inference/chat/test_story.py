"""What a row says of the model servers that its request was sent to."""

from __future__ import annotations

import pytest

from tests.support.live import Gateway
from tests.support.live_catalog import backend, nowhere, publish
from tests.support.until import until
from usage.models import UsageRow
from usage.templatetags.story import phases


def test_a_row_names_the_server_that_answered_and_counts_the_attempts(gateway: Gateway) -> None:
    dead, answering = nowhere(gateway), backend(gateway)
    model = publish(gateway, dead, answering).identifier

    def sent_twice() -> UsageRow | None:
        answer = gateway.chat("say: ok", model=model)
        assert answer.status_code == 200
        row = gateway.row(answer.headers["x-request-id"])
        assert row.model_server == answering.name
        return row if row.attempts == 2 else None

    row = until(sent_twice)
    assert row.queue_ms is not None
    assert row.queue_ms <= row.time_to_first_token_ms


def test_a_request_that_no_server_took_names_the_last_one(gateway: Gateway) -> None:
    dead = nowhere(gateway)
    answer = gateway.chat("say: ok", model=publish(gateway, dead).identifier)

    row = gateway.row(answer.headers["x-request-id"])
    assert (row.outcome, row.model_server) == ("backend_unavailable", dead.name)
    assert row.attempts == 1


TIMES = [
    # queue, first token, whole: the phases with their milliseconds
    ((10, 110, 300), [("queue", 10), ("first", 100), ("rest", 190)]),
    ((None, 0, 300), [("rest", 300)]),
    ((50, 20, 30), [("queue", 30)]),
    ((0, 0, 0), []),
]


@pytest.mark.parametrize(("times", "found"), TIMES)
def test_the_phases_of_a_request_add_up(
    times: tuple[int | None, int, int], found: list[tuple[str, int]]
) -> None:
    queued, first, whole = times
    row = UsageRow(queue_ms=queued, time_to_first_token_ms=first, total_duration_ms=whole)

    parts = phases(row)

    assert [(each.name, each.milliseconds) for each in parts] == found
    assert sum(each.share for each in parts) == pytest.approx(100 if parts else 0)
