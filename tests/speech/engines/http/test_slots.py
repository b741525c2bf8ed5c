"""The limit of concurrent utterances on a speech server, and its queue."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from speech.engines import EngineFull
from tests.support.speech.speech_server import (
    PROFILES,
    SpeechServer,
    described,
    heard,
    said,
    speaking,
)
from tests.support.until import until_async

SLOW = "t [[sim pace=0.5 piece=480]]"


async def test_no_more_utterances_run_than_the_backend_allows(server: SpeechServer) -> None:
    backend = described(server.url, max_concurrency=2, model="t [[sim first=0.05]]")
    async with speaking(backend) as engine:
        spoken = await asyncio.gather(*(heard(engine, said(f"Number {n}.")) for n in range(9)))
        assert engine.inflight == engine.waiting == 0

    assert len(set(spoken)) == 9
    assert server.account()["most_running"] == 2


async def test_concurrent_utterances_get_their_own_sound(server: SpeechServer) -> None:
    texts = [f"This is sentence number {n}." for n in range(30)]
    async with speaking(described(server.url, "pcm")) as engine:
        alone = [await heard(engine, said(text)) for text in texts]
        together = await asyncio.gather(*(heard(engine, said(text)) for text in texts))

    assert together == alone


async def test_a_full_queue_is_refused_at_once(server: SpeechServer, settings: Any) -> None:
    settings.SVC_BACKEND_QUEUE_LENGTH = 1
    async with speaking(described(server.url, "pcm", max_concurrency=1, model=SLOW)) as engine:
        first = engine.speak(said("The first one takes its time."))
        await anext(first)
        second = asyncio.ensure_future(heard(engine, said("The second.")))
        await until_async(lambda: engine.waiting == 1)
        with pytest.raises(EngineFull):
            await heard(engine, said("The third."))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await first.aclose()
        assert engine.inflight == engine.waiting == 0


async def test_an_utterance_without_a_free_slot_is_refused_in_time(
    server: SpeechServer, settings: Any
) -> None:
    settings.SVC_BACKEND_QUEUE_SECONDS = 0.2
    async with (
        speaking(described(server.url, "pcm", max_concurrency=1, model=SLOW)) as engine,
        aclosing(engine.speak(said("The first one takes its time."))) as first,
    ):
        await anext(first)
        with pytest.raises(EngineFull):
            await heard(engine, said("The second."))


async def test_organizations_take_turns(server: SpeechServer) -> None:
    order: list[str] = []

    async with speaking(described(server.url, max_concurrency=1)) as engine:

        async def spoken(name: str, organization: str) -> None:
            await heard(engine, said(f"{name}.", organization_id=organization))
            order.append(name)

        await asyncio.gather(*(spoken(f"a{n}", "a") for n in range(4)), spoken("b0", "b"))
    assert order.index("b0") == 2


@pytest.mark.parametrize("profile", PROFILES)
async def test_stopping_early_closes_the_connection_and_frees_the_slot(
    server: SpeechServer, profile: str
) -> None:
    extra = {"stream_format": "audio"} if profile == "file" else PROFILES[profile]["extra_fields"]
    backend = described(server.url, profile, max_concurrency=1, model=SLOW, extra_fields=extra)
    async with speaking(backend) as engine:
        utterance = engine.speak(said("Nobody stays to hear the end of this one."))
        await anext(utterance)
        assert engine.inflight == 1
        await utterance.aclose()
        assert engine.inflight == 0
        await server.runs(0)
        (entry,) = server.requests("speech")
        assert entry["aborted"]
        engine.describe(replace(backend, model="t"))
        assert await heard(engine, said("Next."))


async def test_a_cancelled_caller_frees_the_slot(server: SpeechServer) -> None:
    backend = described(server.url, max_concurrency=1, model="t [[sim first=30]]")
    async with speaking(backend) as engine:
        caller = asyncio.ensure_future(heard(engine, said("Not now.")))
        await server.runs(1)
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        assert engine.inflight == 0
    await server.runs(0)


async def test_a_changed_description_is_used_from_the_next_utterance_on(
    server: SpeechServer,
) -> None:
    backend = described(server.url, "pcm", max_concurrency=2, model=SLOW)
    async with speaking(backend) as engine:
        first = engine.speak(said("The first one takes its time."))
        await anext(first)
        engine.describe(replace(backend, model="another"))
        assert await heard(engine, said("Second."))
        assert await anext(first)
        await first.aclose()

    assert server.requests_with("Second.")[0]["body"]["model"] == "another"
