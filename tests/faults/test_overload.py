"""Load of three times the capacity: throughput stays, and other requests are refused at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.faults.case import Case, publish_on
from tests.support.faults.seen import Seen, ask
from tests.support.live import Gateway
from tests.support.live_catalog import backend

StartGateway = Callable[..., Gateway]
SLOTS = 4
SERVICE_SECONDS = 0.5
"""So long that the processors of a small machine are never the bottleneck."""
SECONDS = 5.0
CAPACITY = SLOTS / SERVICE_SECONDS


def offer(case: Case, times: float) -> list[Seen]:
    """Send requests at an even rate of ``times`` the capacity, whatever their outcome."""
    count = round(times * CAPACITY * SECONDS)
    pace = SECONDS / count
    began = time.monotonic()

    def at_its_time(number: int) -> Seen:
        time.sleep(max(0.0, began + number * pace - time.monotonic()))
        return ask(
            case.gateway,
            case.model,
            f"[[sim first={SERVICE_SECONDS} tokens=2]]",
            streamed=number % 2 == 0,
        )

    with ThreadPoolExecutor(count) as threads:
        found = list(threads.map(at_its_time, range(count)))
    case.seen += found
    return found


@pytest.mark.long
def test_at_three_times_the_capacity_most_of_it_is_still_goodput(
    gateway: Gateway, start_gateway: StartGateway
) -> None:
    gateway.organization.tokens_per_minute = None
    gateway.organization.save()
    model = publish_on(gateway, backend(gateway, max_concurrency=SLOTS, running_usage="vllm"))
    # A gateway that starts after the publication serves the model at once.
    started = start_gateway(SVC_BACKEND_QUEUE_LENGTH=str(SLOTS))
    case = Case(started, model, [gateway.simulator.requests])
    assert case.ask(streamed=True).complete

    alone = sum(each.complete for each in offer(case, 1))
    crowded = offer(case, 3)

    served = sum(each.complete for each in crowded)
    refused = [each for each in crowded if not each.complete]
    assert {each.told for each in refused} == {(503, "server_overloaded")}
    assert served >= 0.7 * alone
    case.agree(1 + alone + served)
