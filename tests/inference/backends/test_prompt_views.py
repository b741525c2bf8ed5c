"""What a backend's view says of prompts: cached tokens, moves, unanswered and lost ones."""

from __future__ import annotations

import pytest

from inference.backends.pool import BackendPool
from inference.backends.pooled import BackendView
from inference.catalog.snapshot import DeploymentRef
from tests.inference.backends.test_placement import ASKED, chat, deployments, ended, loaded
from tests.support.clocks import Clock


def viewed(pool: BackendPool, of: tuple[DeploymentRef, ...]) -> dict[str, BackendView]:
    return {each.id: each for each in pool.views([each.backend for each in of], [of])}


@pytest.mark.parametrize("count", [1, 2])
async def test_reported_tokens_are_added_up_also_of_a_model_with_one_server(
    pool: BackendPool, count: int
) -> None:
    some = deployments(count)
    prompt = chat(ASKED)
    sent = [await ended(pool, some, prompt, cached) for cached in (0, None, 300)]

    assert len(set(sent)) == 1
    view = viewed(pool, some)[sent[0]]
    assert (view.cached_tokens, view.prompt_tokens) == (300, 2 * (prompt.size // 4))


async def test_unanswered_work_ends_with_the_first_token(pool: BackendPool) -> None:
    two = deployments(2)
    prompt = chat(ASKED * 20)
    lease = await pool.lease(two, prompt)
    home = lease.deployment.backend.id

    assert viewed(pool, two)[home].unanswered_tokens == prompt.size // 4
    lease.answered()
    assert {each.unanswered_tokens for each in viewed(pool, two).values()} == {0}
    lease.release()


async def test_a_move_counts_where_the_conversation_was(pool: BackendPool) -> None:
    four = deployments(4)
    told = [ASKED]
    home = await ended(pool, four, chat(*told))
    told += ["Yes.", "Why?"]
    assert await ended(pool, four, chat(*told)) == home
    assert {each.moves for each in viewed(pool, four).values()} == {0}

    (busy,) = [each for each in four if each.backend.id == home]
    await loaded(pool, busy, 16)
    told += ["So.", "And?"]
    other = await ended(pool, four, chat(*told))

    assert other != home
    assert {id_: each.moves for id_, each in viewed(pool, four).items() if each.moves} == {home: 1}


async def test_what_was_lost_counts_half_after_five_seconds(
    pool: BackendPool, clock: Clock
) -> None:
    two = deployments(2)
    prompt = chat(ASKED * 20)
    home = await ended(pool, two, prompt)
    assert await ended(pool, two, prompt, cached=0) == home

    lost = viewed(pool, two)[home].lost_tokens
    assert 0.9 * prompt.size < 4 * lost <= 1.1 * prompt.size
    clock.now += 5.0
    assert viewed(pool, two)[home].lost_tokens == pytest.approx(lost / 2, abs=1)
