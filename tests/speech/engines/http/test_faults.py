"""Failures of a speech server, at each stage and in each profile, have their errors."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from simulators.speech.faults import SpeechFault
from speech.engines import (
    EngineError,
    EngineFull,
    EngineProtocolError,
    EngineTimeout,
    EngineUnavailable,
)
from speech.engines.http.engine import HttpEngine
from tests.support.live import ROOT, free_port
from tests.support.speech.speech_server import (
    PROFILES,
    SpeechServer,
    described,
    heard,
    running_speech_server,
    said,
    speaking,
)
from tests.support.until import until_async
from usage.models import Outcome

SECRETS = ["sk-upstream-secret-0123456789", "Traceback", "10.0.0.5", "Guarded words"]

BEFORE_A_SOUND: list[tuple[str, type[EngineError]]] = [
    ("status@400", EngineError),
    ("status@401", EngineError),
    ("status@403", EngineError),
    ("status@404", EngineError),
    ("status@408", EngineTimeout),
    ("status@413", EngineError),
    ("status@418", EngineError),
    ("status@422", EngineError),
    ("status@429", EngineFull),
    ("status@500", EngineError),
    ("status@502", EngineError),
    ("status@503", EngineFull),
    ("status@504", EngineTimeout),
    ("status@304", EngineProtocolError),
    ("redirect", EngineProtocolError),
    ("html", EngineProtocolError),
    ("json", EngineProtocolError),
    ("empty", EngineProtocolError),
    ("compressed", EngineProtocolError),
    ("silence", EngineProtocolError),
    ("short", EngineProtocolError),
    ("cut", EngineUnavailable),
    ("reset", EngineUnavailable),
]
MIDWAY = [("cut@9000", EngineUnavailable), ("reset@9000", EngineUnavailable)]


@pytest.fixture(scope="module")
def server() -> Iterator[SpeechServer]:
    with running_speech_server() as running:
        yield running


async def failure_of(server: SpeechServer, fault: str, **changes: Any) -> tuple[EngineError, int]:
    """The failure of an utterance, and the number of pieces before it."""
    model = changes.pop("model", f"t [[sim fault={fault}]]")
    pieces: list[bytes] = []

    async def listen(engine: HttpEngine) -> None:
        spoken = engine.speak(said("Guarded words are spoken here, one by one."))
        async for piece in spoken:
            pieces.append(piece)  # noqa: PERF401  # the pieces before a failure count

    async with speaking(described(server.url, model=model, **changes)) as engine:
        with pytest.raises(EngineError) as failure:
            await listen(engine)
        assert engine.inflight == 0
    return failure.value, len(pieces)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("fault", "kind"), BEFORE_A_SOUND)
async def test_a_failure_before_the_first_sound_has_its_error(
    server: SpeechServer,
    caplog: pytest.LogCaptureFixture,
    profile: str,
    fault: str,
    kind: type[EngineError],
) -> None:
    caplog.set_level(logging.DEBUG)
    failure, pieces = await failure_of(server, fault, profile=profile)

    assert (failure.outcome, pieces) == (kind.outcome, 0)
    assert isinstance(failure, kind)
    if kind is EngineError:
        assert not isinstance(failure, EngineFull | EngineTimeout | EngineProtocolError)
    told = str(failure) + caplog.text
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.parametrize("extra", [{}, {"stream_format": "audio"}], ids=["length", "chunks"])
@pytest.mark.parametrize(("fault", "kind"), MIDWAY)
async def test_a_truncated_file_is_an_error(
    server: SpeechServer, fault: str, kind: type[EngineError], extra: dict[str, Any]
) -> None:
    failure, _ = await failure_of(server, fault, extra_fields=extra)

    assert type(failure) is kind


@pytest.mark.parametrize("profile", ["pcm", "sse"])
@pytest.mark.parametrize(("fault", "kind"), MIDWAY)
async def test_a_truncated_stream_is_an_error(
    server: SpeechServer, profile: str, fault: str, kind: type[EngineError]
) -> None:
    failure, pieces = await failure_of(
        server, fault, profile=profile, model=f"t [[sim fault={fault} piece=1000 pace=4]]"
    )

    assert type(failure) is kind
    assert pieces


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", ["hang", "hang@6000", "slow_header@5"])
async def test_an_idle_server_is_a_timeout(server: SpeechServer, profile: str, fault: str) -> None:
    failure, _ = await failure_of(server, fault, profile=profile, first_byte_seconds=0.4)

    assert isinstance(failure, EngineTimeout)
    assert failure.outcome == "backend_timeout"


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_answer_without_end_is_a_timeout(server: SpeechServer, profile: str) -> None:
    model = "t [[sim pace=0.2 piece=1000]]"
    failure, _ = await failure_of(server, "", profile=profile, model=model, total_seconds=0.6)

    assert isinstance(failure, EngineTimeout)


async def test_a_slow_listener_does_not_use_up_the_timeouts(server: SpeechServer) -> None:
    text = "A sentence of some length, for a listener who is in no hurry at all."
    backend = described(server.url, "pcm", model="t [[sim piece=9600 pace=50]]", total_seconds=0.5)
    async with speaking(backend) as engine:
        async for _ in engine.speak(said(text)):
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_sound_without_end_is_refused(server: SpeechServer, profile: str) -> None:
    changes = {"extra_fields": {"stream_format": "audio"}} if profile == "file" else {}
    failure, pieces = await failure_of(server, "huge", profile=profile, **changes)

    assert type(failure) is EngineProtocolError
    assert pieces


@pytest.mark.parametrize(
    ("profile", "fault", "outcome"),
    [
        ("file", "garbage", "backend_protocol_error"),
        ("pcm", "odd", "backend_protocol_error"),
        ("sse", "odd", "backend_protocol_error"),
        ("sse", "no_done", "backend_protocol_error"),
        ("sse", "bad_event", "backend_protocol_error"),
        ("sse", "error_event@0", "backend_error"),
        ("sse", "error_event@3", "backend_error"),
    ],
)
async def test_an_invalid_answer_is_an_error(
    server: SpeechServer, profile: str, fault: str, outcome: str
) -> None:
    failure, _ = await failure_of(server, fault, profile=profile)

    assert failure.outcome == outcome


async def test_a_wav_file_may_end_with_its_connection(server: SpeechServer) -> None:
    whole = "t [[sim fault=unframed]]"
    async with speaking(described(server.url, model=whole)) as engine:
        assert await heard(engine, said("Guarded words."))

    failure, _ = await failure_of(server, "unframed@9000")
    assert isinstance(failure, EngineProtocolError)


async def test_an_unreachable_server_is_an_error() -> None:
    async with speaking(described(f"http://127.0.0.1:{free_port()}")) as engine:
        with pytest.raises(EngineUnavailable):
            await heard(engine, said("Hello."))
        assert engine.inflight == 0


def test_every_failure_has_an_outcome_of_the_ledger() -> None:
    kinds = [EngineError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    assert {kind.outcome for kind in kinds} <= set(Outcome.values)


@pytest.mark.parametrize("fault", SpeechFault)
def test_every_fault_of_the_simulator_is_documented(fault: SpeechFault) -> None:
    page = (ROOT / "docs/develop/simulator.md").read_text().split("## The speech server")[1]
    assert re.search(rf"^\|.*`{fault}[`@]", page, re.MULTILINE)


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]

PCM = bytes(range(1, 251)) * 40
ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\ncontent-length: %d\r\n\r\n" % len(PCM) + PCM
)


@asynccontextmanager
async def listening(answering: Answering) -> AsyncIterator[tuple[str, list[int]]]:
    """A separate server; yields its address and the requests on each connection."""
    counts: list[int] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(counts)
        counts.append(0)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                counts[number] += 1
                await answering(reader, writer, sum(counts))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}", counts


async def test_a_kept_connection_that_was_closed_is_replaced_once() -> None:
    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        if n == 2:
            writer.close()
        else:
            writer.write(ANSWER)

    async with (
        listening(answering) as (url, counts),
        speaking(described(url, "pcm")) as engine,
    ):
        assert await heard(engine, said("One.")) == PCM
        assert await heard(engine, said("Two.")) == PCM
    assert counts == [2, 1]


async def test_a_request_on_a_new_connection_is_not_retried() -> None:
    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        writer.close()

    async with (
        listening(answering) as (url, counts),
        speaking(described(url, "pcm")) as engine,
    ):
        with pytest.raises(EngineUnavailable):
            await heard(engine, said("One."))
    assert counts == [1]


async def test_a_request_is_not_retried_after_its_answer_began() -> None:
    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        writer.write(ANSWER if n == 1 else ANSWER[:2000])
        if n > 1:
            writer.close()

    async with (
        listening(answering) as (url, counts),
        speaking(described(url, "pcm")) as engine,
    ):
        assert await heard(engine, said("One."))
        with pytest.raises(EngineUnavailable):
            await heard(engine, said("Two."))
    assert counts == [2]


async def test_an_answer_that_is_not_http_is_an_error() -> None:
    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    async with (
        listening(answering) as (url, _),
        speaking(described(url)) as engine,
    ):
        with pytest.raises(EngineProtocolError):
            await heard(engine, said("One."))


@pytest.mark.parametrize(
    ("content_type", "seconds"),
    [
        ("audio/pcm;rate=8000", 0.625),
        ('audio/pcm; RATE="16000"', 0.3125),
        ("audio/pcm; rate=48000; channels=2", 0.052),
        ("audio/L16; rate=48000", 0.104),
    ],
)
async def test_the_answers_own_rate_wins(content_type: str, seconds: float) -> None:
    typed = ANSWER.replace(b"audio/pcm", content_type.encode())

    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        writer.write(typed)

    async with (
        listening(answering) as (url, _),
        speaking(described(url, "pcm", sample_rate=44_100)) as engine,
    ):
        pcm = await heard(engine, said("One."))
    assert len(pcm) / 48_000 == pytest.approx(seconds, abs=0.002)


@pytest.mark.parametrize("rate", ["1", "999999", "-8000", "many"])
async def test_an_impossible_rate_is_refused(rate: str) -> None:
    async def answering(_: asyncio.StreamReader, writer: asyncio.StreamWriter, n: int) -> None:
        writer.write(ANSWER.replace(b"audio/pcm", b"audio/pcm;rate=" + rate.encode()))

    async with (
        listening(answering) as (url, _),
        speaking(described(url, "pcm")) as engine,
    ):
        with pytest.raises(EngineProtocolError):
            await heard(engine, said("One."))


async def test_closing_the_engine_ends_running_utterances(server: SpeechServer) -> None:
    backend = described(server.url, "pcm", model="t [[sim pace=0.5 piece=480]]")
    async with speaking(backend) as engine:
        utterance = engine.speak(said("Nobody will hear the end of this."))
        assert await anext(utterance)
        await engine.close()
        with pytest.raises(EngineUnavailable):
            async for _ in utterance:
                pass
        with pytest.raises(EngineUnavailable):
            await heard(engine, said("Hello."))
    await until_async(lambda: asyncio.to_thread(lambda: server.account()["running"] == 0))
