"""Deployments of one model with different weights: who gets new conversations, and who keeps them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from core.backends.ejection import Ejector, Rules
from core.errors import BackendUnavailable
from inference.backends.pool import BackendPool
from inference.backends.prompts import Prompt
from inference.catalog.snapshot import DeploymentRef
from tests.inference.backends.test_placement import chat, deployments, ended, loaded
from tests.support.clocks import Clock

MANY = 4000


def weighted(*weights: int, slots: int = 32) -> tuple[DeploymentRef, ...]:
    total = sum(weights)
    return tuple(
        replace(each, share=weight / total)
        for each, weight in zip(deployments(len(weights), slots), weights, strict=True)
    )


def pool() -> BackendPool:
    clock = Clock()
    return BackendPool(Ejector(Rules(2, 5.0), clock), clock=clock)


def talk(number: int, *more: str) -> Prompt:
    return chat(f"Question {number}. " * 80, *more)


@pytest.mark.parametrize("weights", [(90, 10), (1, 1000), (50, 30, 20)])
@pytest.mark.parametrize("kind", ["conversations", "short prompts"])
async def test_new_conversations_are_dealt_in_the_shares(
    weights: tuple[int, ...], kind: str
) -> None:
    servers, here = weighted(*weights), pool()
    is_long = kind == "conversations"

    got = Counter(
        [
            await ended(here, servers, talk(each) if is_long else Prompt("a", 100))
            for each in range(MANY)
        ]
    )

    for at, weight in enumerate(weights):
        share = weight / sum(weights)
        # Five standard deviations of a binomial count: chance alone does not fail this.
        allowed = 5 * (MANY * share * (1 - share)) ** 0.5
        assert abs(got[f"b{at}"] - MANY * share) < allowed + 1, got


async def test_a_later_turn_stays_also_in_another_worker_and_when_weights_change() -> None:
    servers, here, elsewhere = weighted(90, 10), pool(), pool()
    first = {each: await ended(here, servers, talk(each)) for each in range(200)}
    assert set(first.values()) == {"b0", "b1"}
    turns = {each: talk(each, "An answer.", "And then?") for each in first}

    assert {each: await ended(here, servers, turn) for each, turn in turns.items()} == first
    assert {each: await ended(elsewhere, servers, turn) for each, turn in turns.items()} == first
    raised = weighted(50, 50)
    raised = (replace(raised[0], share=0.6), replace(raised[1], share=0.4))
    assert {each: await ended(here, raised, turn) for each, turn in turns.items()} == first
    moved = {each: await ended(pool(), raised, talk(each)) for each in first}
    assert {(first[each], moved[each]) for each in first} == {
        ("b0", "b0"),
        ("b0", "b1"),
        ("b1", "b1"),
    }, "a raised weight takes conversations, and gives none away"


async def test_a_full_server_and_an_ejected_one_are_passed_over() -> None:
    servers, here = weighted(1_000_000, 1, slots=1), pool()
    (running,) = await loaded(here, servers[0], 1)
    assert await ended(here, servers, talk(1)) == "b1"
    running.release()
    assert await ended(here, servers, talk(2)) == "b0"
    for _ in range(2):
        lease = await here.lease(servers[:1], talk(3))
        lease.report.failed()
        lease.release()
    assert await ended(here, servers, talk(4)) == "b1"


async def test_a_retry_goes_to_the_other_one_and_then_nowhere() -> None:
    servers, here = weighted(90, 10), pool()
    read_again = tuple(replace(each) for each in servers)

    lease = await here.lease(read_again, talk(1), without=servers[0])

    assert lease.deployment.backend.id == "b1"
    with pytest.raises(BackendUnavailable):
        await here.lease(servers[:1], talk(1), without=servers[0])


async def test_what_runs_is_counted_by_the_models_name() -> None:
    here = pool()
    first, other = deployments(1)[0], replace(deployments(1)[0], model="other")
    leases = [await here.lease((each,), talk(1)) for each in (first, first, other)]

    def running() -> dict[str, int]:
        return here.views([first.backend], [])[0].running

    assert running() == {"m": 2, "other": 1}
    for lease in leases:
        lease.release()
        lease.release()
    assert running() == {}
