"""Where requests go among several servers of one model: to what is warm, else to what has least to do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.placement.simulate import CARD, Cell, Found, simulated
from core.errors import ServerOverloaded
from inference.backends import placement
from inference.backends.placement import Placement, Server
from inference.backends.pool import BackendPool, Lease
from inference.backends.prompts import Prompt, prompt_of
from inference.catalog.snapshot import DeploymentRef
from inference.wire import ChatRequest
from tests.inference.backends.test_connections import BACKEND
from tests.support.clocks import Clock

TOOLS = [{"type": "function", "function": {"name": "look", "description": "x" * 2000}}]
SYSTEM = "You are careful. " * 100
ASKED = "What is in this text? " * 50


def deployments(count: int, slots: int = 32) -> tuple[DeploymentRef, ...]:
    return tuple(
        DeploymentRef(
            replace(
                BACKEND,
                id=f"b{at}",
                name=f"gpu-{at}",
                base_url=f"http://127.0.0.1:{at + 1}/v1",
                max_concurrency=slots,
            ),
            "m",
        )
        for at in range(count)
    )


def chat(*turns: str, system: str = SYSTEM, organization: str = "a", **fields: Any) -> Prompt:
    """The prompt of a conversation; ``turns`` are of the user and of the assistant in turn."""
    messages = [{"role": "system", "content": system}]
    roles = ("user", "assistant")
    messages += [{"role": roles[at % 2], "content": turn} for at, turn in enumerate(turns)]
    request = ChatRequest.from_fields({"model": "m", "messages": messages, **fields})
    return prompt_of(request, organization, sum(len(each["content"]) + 40 for each in messages))


async def ended(
    pool: BackendPool, four: tuple[DeploymentRef, ...], prompt: Prompt, cached: int | None = None
) -> str:
    """Where ``prompt`` was sent, and answered at once."""
    lease = await pool.lease(four, prompt)
    lease.answered()
    lease.learn(prompt.size // 4, cached)
    lease.report.succeeded()
    lease.release()
    return lease.deployment.backend.id


async def loaded(pool: BackendPool, backend: DeploymentRef, count: int) -> list[Lease]:
    """``count`` requests that run on ``backend``."""
    return [await pool.lease((backend,), chat(f"{at}")) for at in range(count)]


async def test_a_conversation_stays_where_it_began(pool: BackendPool) -> None:
    four = deployments(4)
    for number in range(12):
        told = [f"{number} {ASKED}"]
        first = await ended(pool, four, chat(*told))
        for turn in range(3):
            told += [f"The answer {turn}.", f"And {turn}?"]
            assert await ended(pool, four, chat(*told)) == first


async def test_new_prompts_go_to_the_server_with_least_unanswered_work(pool: BackendPool) -> None:
    """The number of requests is the same; one has long prompts in front of it."""
    two = deployments(2)
    long = await pool.lease(two, chat(ASKED * 20, system="a"))
    first = long.deployment.backend.id
    others = [await pool.lease(two, chat(f"{at} {ASKED}", system="b")) for at in range(3)]
    assert {each.deployment.backend.id for each in others} == {"b0", "b1"} - {first}

    long.answered()
    other = await pool.lease(two, chat(f"4 {ASKED}", system="c"))
    assert other.deployment.backend.id == first


async def test_short_prompts_take_turns(pool: BackendPool) -> None:
    four = deployments(4)
    sent = [await ended(pool, four, chat(f"{at}", system="Hi")) for at in range(8)]
    assert sorted(sent) == sorted(2 * [f"b{at}" for at in range(4)])


async def test_a_prompt_goes_where_its_system_prompt_is_until_that_is_busier(
    pool: BackendPool,
) -> None:
    four = deployments(4)
    head = SYSTEM * 8
    home = await ended(pool, four, chat(f"0 {ASKED}", system=head))
    held = [await pool.lease(four, chat(f"{at} {ASKED}", system=head)) for at in range(20)]
    sent = [each.deployment.backend.id for each in held]
    assert sent[:3] == [home] * 3
    assert len(set(sent)) > 1


async def test_a_conversation_moves_where_its_server_has_much_more_to_do(pool: BackendPool) -> None:
    four = deployments(4)
    home = await ended(pool, four, chat(ASKED))
    (busy,) = [each for each in four if each.backend.id == home]
    await loaded(pool, busy, 8)
    later = chat(ASKED, "Yes.", "Why?")
    assert await ended(pool, four, later) == home
    await loaded(pool, busy, 8)
    assert await ended(pool, four, later) != home


async def test_a_conversation_leaves_a_server_whose_cache_loses_what_it_has(
    pool: BackendPool,
) -> None:
    two = deployments(2)
    told = [ASKED * 20]
    home = await ended(pool, two, chat(*told))
    sent = []
    for turn in range(6):
        told += [f"The answer {turn}.", f"And {turn}?"]
        sent.append(await ended(pool, two, chat(*told), cached=0))
    # Three times 5 900 tokens are lost, then the other one, of which nothing is known.
    assert sent[:3] == [home] * 3
    assert sent[3] != home


@pytest.mark.parametrize("lost", ["ejected", "moved"])
async def test_what_was_known_of_a_server_is_forgotten_when_it_begins_anew(
    pool: BackendPool, clock: Clock, lost: str
) -> None:
    two = deployments(2)
    home = int((await ended(pool, two, chat(ASKED)))[1:])
    later = chat(ASKED, "Yes.", "Why?")
    await loaded(pool, two[home], 3)
    assert await ended(pool, two, later) == f"b{home}"

    clock.now += 1.0
    if lost == "ejected":
        for lease in await loaded(pool, two[home], 2):
            lease.report.failed()
        clock.now += 6.0
        (probe,) = await loaded(pool, two[home], 1)
        probe.report.answered()
    else:
        moved = replace(two[home].backend, base_url="http://127.0.0.1:99/v1")
        two = tuple(replace(each, backend=moved) if each is two[home] else each for each in two)
    # It has more to do, and nothing to make up for that.
    assert await ended(pool, two, later) != f"b{home}"


async def test_organizations_learn_nothing_of_each_other(pool: BackendPool) -> None:
    """The same text, and the same ``prompt_cache_key``."""
    two = deployments(2)
    prompt = chat(ASKED, "Yes.", "Why?", prompt_cache_key="k")
    home = await ended(pool, two, prompt)
    (busy,) = [each for each in two if each.backend.id == home]
    await loaded(pool, busy, 3)
    assert await ended(pool, two, prompt) == home
    other = chat(ASKED, "Yes.", "Why?", prompt_cache_key="k", organization="b")
    assert await ended(pool, two, other) != home


@pytest.mark.parametrize("shared", ["key", "examples"])
def test_prompts_that_are_not_alike_count_in_full(clock: Clock, shared: str) -> None:
    """Else a server that has much to do looks idle to others, and one that kept all as if it lost it."""
    found, server = Placement(homes=False, clock=clock), Server("b0")
    for number in range(3):
        text = f"{number} " * 20_000
        prompt = (
            chat("Go on.", system=text, prompt_cache_key="k")
            if shared == "key"
            else chat(ASKED, "Yes.", text)
        )
        placed = found.place(prompt, server)
        assert server.unanswered_tokens >= len(text) / 4
        found.learn(placed, prompt.size // 4, max(prompt.size - len(text) - 100, 0) // 4)
        found.answered(placed)
        assert found.stays(prompt, [placement.Candidate(server, 0)]) == 0
    assert not server.lost_lately(clock.now)


def test_one_organizations_prompts_displace_no_other_ones(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Neither at its own bound nor at that of all."""
    monkeypatch.setattr(placement, "_MARKS", 30)
    monkeypatch.setattr(placement, "_ALL_MARKS", 40)
    found, server, other = Placement(homes=False, clock=clock), Server("b0"), Server("b1")
    candidates = [placement.Candidate(server, 0), placement.Candidate(other, 0)]
    kept = [chat(f"{at} {ASKED}", "Yes.", "Why?", organization="a") for at in range(4)]
    for prompt in kept:
        found.answered(found.place(prompt, server))
    for number in range(500):
        flood = chat(f"{number} {ASKED}", "Yes.", "Why?", organization=f"flood-{number % 2}")
        found.answered(found.place(flood, other))
    assert [found.stays(prompt, candidates) for prompt in kept] == [0] * 4


def test_many_organizations_with_few_prompts_each_stay_within_the_bound_of_all(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(placement, "_ALL_MARKS", 40)
    found, server = Placement(homes=False, clock=clock), Server("b0")
    for number in range(100):
        found.answered(found.place(chat(ASKED, organization=str(number)), server))
    assert sum(len(marks) for marks in found._marks.values()) <= 41


def test_workers_that_hear_nothing_of_each_other_agree_on_the_home_of_a_conversation(
    clock: Clock,
) -> None:
    workers = [Placement(homes=True, clock=clock) for _ in range(3)]
    homes = set()
    for number in range(30):
        later = chat(f"{number} {ASKED}", "Yes.", "Why?")
        first = {
            worker.order(later, [placement.Candidate(Server(f"b{at}"), 0) for at in range(4)])[0][0]
            for worker in workers
        }
        assert len(first) == 1
        homes |= first
    assert homes == {0, 1, 2, 3}


async def test_a_popular_beginning_is_not_computed_at_every_server(pool: BackendPool) -> None:
    four, head = deployments(4), "You know all about trains. " * 300
    home = await ended(pool, four, chat("Hi", system=head))
    (busy,) = [each for each in four if each.backend.id == home]
    await loaded(pool, busy, 12)
    assert await ended(pool, four, chat("Hello", system=head)) == home
    await loaded(pool, busy, 6)
    assert await ended(pool, four, chat("Good day", system=head)) != home


async def test_a_conversation_waits_for_its_server_and_a_new_one_for_any(pool: BackendPool) -> None:
    two = deployments(2, slots=1)
    home = await ended(pool, two, chat(ASKED))
    at = int(home[1:])
    [warm], [cold] = await loaded(pool, two[at], 1), await loaded(pool, two[1 - at], 1)
    later = asyncio.create_task(pool.lease(two, chat(ASKED, "Yes.", "Why?")))
    await asyncio.sleep(0)
    cold.release()
    new = await pool.lease(two, chat("Something new. " * 100, system="x"))
    assert (new.deployment.backend.id, later.done()) == (f"b{1 - at}", False)
    other = asyncio.create_task(pool.lease(two, chat("Another. " * 200, system="y")))
    await asyncio.sleep(0)
    new.release()
    assert (await other).deployment.backend.id == f"b{1 - at}"
    warm.release()
    assert (await later).deployment.backend.id == home
    views = {each.id: each for each in pool.views([each.backend for each in two], [two])}
    assert [(views[each].inflight, views[each].waiting) for each in ("b0", "b1")] == [(1, 0)] * 2


async def test_a_cancelled_or_refused_wait_holds_no_slot(pool: BackendPool, settings: Any) -> None:
    settings.SVC_BACKEND_QUEUE_SECONDS = 0.05
    two = deployments(2, slots=1)
    held = [*await loaded(pool, two[0], 1), *await loaded(pool, two[1], 1)]
    cancelled = asyncio.create_task(pool.lease(two, chat("Hello")))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(ServerOverloaded):
        await pool.lease(two, chat("Hello"))
    for each in held:
        each.release()
    views = pool.views([each.backend for each in two], [two])
    assert [(each.inflight, each.waiting) for each in views] == [(0, 0)] * 2


def test_the_marks_of_a_prompt() -> None:
    short = chat("Hi", system="Be kind.")
    assert (short.beginning, short.conversation) == ((), None)
    first = chat(ASKED, tools=TOOLS)
    assert [size for _, size in first.beginning][:1] == [2048]
    later = chat(ASKED, "Yes.", "Why?", tools=TOOLS)
    latest = chat(ASKED, "Yes.", "Why?", "So.", "Really?", tools=TOOLS)
    assert later.beginning == latest.beginning == first.beginning
    assert (first.conversation, first.earlier) == (None, 0)
    assert later.conversation == latest.conversation is not None
    assert later.conversation != chat(ASKED, "No.", "Why?", tools=TOOLS).conversation
    assert later.head == chat("Something else. " * 50, tools=TOOLS).head


def ratios(workload: str, users: int, **fields: Any) -> tuple[Found, Found]:
    """The figures of a workload in virtual time, placed and in turns: exact, whatever the machine does."""
    cell = Cell(workload, users, "5", seconds=20.0, **fields)
    return simulated(cell), simulated(replace(cell, round_robin=True))


def test_conversations_are_answered_from_the_caches_of_four_servers() -> None:
    placed, turns = ratios("conv", 32)
    assert placed.all.cached > 0.97 * placed.all.ideal
    assert placed.all.p90 < 0.5 * turns.all.p90
    assert placed.all.output > 1.15 * turns.all.output
    assert placed.spread < 1.2


def test_prompts_that_share_nothing_are_answered_no_later_than_in_turns() -> None:
    placed, turns = ratios("none", 32)
    assert placed.all.p90 < 1.05 * turns.all.p90
    assert placed.all.output > 0.98 * turns.all.output


def test_heads_that_overfill_every_cache_get_one_each() -> None:
    placed, turns = ratios("shared", 24, card=replace(CARD, blocks=1536, batch=12))
    assert placed.all.cached > 1.15 * turns.all.cached


def test_workers_that_hear_of_each_others_prompts_keep_them_as_warm_as_one() -> None:
    cell = Cell("conv", 96, "5", seconds=20.0, workers=4)
    one, heard = simulated(replace(cell, workers=1)), simulated(cell)
    unheard = simulated(replace(cell, told_seconds=None))
    assert heard.all.output > 0.95 * one.all.output
    assert heard.all.p90 < 0.7 * unheard.all.p90


def test_a_slow_server_gets_less() -> None:
    placed, turns = ratios("conv", 32, slow=2.0)
    assert placed.second < 0.9
    assert placed.all.p90 < 0.5 * turns.all.p90
