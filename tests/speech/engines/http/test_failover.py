"""Several speech servers behind one voice: who speaks, who takes over, who is ejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest

from core.backends.ejection import BackendHealth, Ejector, Rules
from speech.engines import (
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
    SpokenWord,
    Utterance,
)
from speech.engines.http import failover
from speech.engines.http.client import RequestRefused
from speech.engines.http.failover import Failover, Place


class FakeServer:
    """Speaks its name, after ``pieces`` of it with ``error``."""

    def __init__(self, name: str, error: EngineError | None = None, pieces: int = 0) -> None:
        self.name = name
        self.error = error
        self.pieces = pieces
        self.health = BackendHealth()
        self.has_room = True
        self.asked: list[Utterance] = []

    async def spoken(
        self, utterance: Utterance, *, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        self.asked.append(utterance)
        if is_timed and not self.error:
            yield SpokenWord(self.name, 0.0, 1.0)
        for _ in range(self.pieces if self.error else 2):
            yield self.name.encode()
        if self.error is not None:
            raise self.error


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ejector(clock: Clock) -> Ejector:
    return Ejector(Rules(3, 10.0), clock)


def over(
    servers: Sequence[FakeServer], ejector: Ejector, weights: Sequence[int] = (100, 100, 100, 100)
) -> Failover:
    return Failover(
        [
            Place(each.name, each.name, cast(Any, each), f"voice of {each.name}", weight)
            for each, weight in zip(servers, weights, strict=False)
        ],
        ejector,
    )


def utterance(request: str = "req_1", organization_id: str = "acme") -> Utterance:
    return Utterance("Hello.", "en", "v", organization_id=organization_id, request_id=request)


async def spoken(engine: Failover, said: Utterance | None = None) -> bytes:
    return b"".join([piece async for piece in engine.speak(said or utterance())])


async def of_many(engine: Failover, count: int = 400) -> Counter[bytes]:
    return Counter([await spoken(engine, utterance(f"req_{at}")) for at in range(count)])


async def test_requests_are_dealt_by_weight_and_stay_where_they_are(ejector: Ejector) -> None:
    servers = [FakeServer("a"), FakeServer("b")]
    engine = over(servers, ejector, (300, 100))

    seen = await of_many(engine)

    assert 260 < seen[b"aa"] < 340
    assert seen.total() == 400
    assert len({await spoken(engine) for _ in range(20)}) == 1
    assert {each.engine_voice for each in servers[1].asked} == {"voice of b"}


@pytest.mark.parametrize(
    "error",
    [
        EngineError("500"),
        EngineFull("503"),
        EngineTimeout("late"),
        EngineUnavailable("refused"),
        EngineProtocolError("no sound"),
        RequestRefused(404),
    ],
)
async def test_the_next_one_takes_over_before_the_first_sound(
    ejector: Ejector, error: EngineError
) -> None:
    engine = over([FakeServer("a", error), FakeServer("b", error), FakeServer("c")], ejector)

    assert set(await of_many(engine, 30)) == {b"cc"}


async def test_the_words_are_those_of_the_one_that_spoke(ejector: Ejector) -> None:
    engine = over([FakeServer("a", EngineUnavailable("lost")), FakeServer("b")], ejector)

    for at in range(10):
        timed = [piece async for piece in engine.speak_timed(utterance(f"req_{at}"))]
        assert timed == [SpokenWord("b", 0.0, 1.0), b"b", b"b"]


async def test_nobody_takes_over_after_it(ejector: Ejector) -> None:
    servers = [FakeServer(name, EngineUnavailable("lost"), pieces=1) for name in "ab"]
    pieces = over(servers, ejector).speak(utterance())

    assert await anext(pieces) in (b"a", b"b")
    with pytest.raises(EngineUnavailable):
        await anext(pieces)

    assert sum(len(each.asked) for each in servers) == 1


async def test_at_most_three_are_asked_and_the_last_failure_is_raised(ejector: Ejector) -> None:
    servers = [FakeServer(name, EngineTimeout(name)) for name in "abcd"]

    with pytest.raises(EngineTimeout):
        await spoken(over(servers, ejector))

    assert sum(len(each.asked) for each in servers) == 3


async def test_one_that_keeps_failing_is_ejected_and_probed(ejector: Ejector, clock: Clock) -> None:
    bad, good = FakeServer("bad", EngineError("500")), FakeServer("good")
    engine = over([bad, good], ejector)
    before = failover.takeovers.family().samples

    await of_many(engine, 60)

    assert len(bad.asked) == 3
    assert bad.health.ejected
    after = failover.takeovers.family().samples
    assert sum(each.value for each in after) - sum(each.value for each in before) == 3
    clock.now = 11.0
    bad.error = None
    assert (await of_many(engine, 60))[b"badbad"] > 10
    assert not bad.health.ejected


async def test_a_text_that_no_server_speaks_ejects_none(ejector: Ejector) -> None:
    servers = [FakeServer(name, EngineError("500")) for name in "ab"]
    engine = over(servers, ejector)

    for at in range(10):
        with pytest.raises(EngineError):
            await spoken(engine, utterance(f"req_{at}"))

    assert not any(each.health.ejected for each in servers)


async def test_a_full_one_is_asked_after_those_with_room(ejector: Ejector) -> None:
    servers = [FakeServer("a"), FakeServer("b")]
    servers[0].has_room = False

    assert set(await of_many(over(servers, ejector), 20)) == {b"bb"}


async def test_the_only_one_is_asked_whatever_its_health(ejector: Ejector) -> None:
    only = FakeServer("a", EngineUnavailable("refused"))
    engine = over([only], ejector)
    for _ in range(5):
        with pytest.raises(EngineUnavailable):
            await spoken(engine)

    only.error = None
    assert await spoken(engine) == b"aa"
