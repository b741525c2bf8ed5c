"""Failures of a speech server, at each stage and in each profile, have their errors."""

from __future__ import annotations

import asyncio
import logging
import re
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
from speech.engines.http.client import Timeouts
from speech.engines.http.engine import HttpEngine
from tests.support.live import ROOT, free_port
from tests.support.servers.scripted import ScriptedServer, Step, running, sized
from tests.support.servers.tcp_proxy import End
from tests.support.speech.speech_server import (
    PROFILES,
    SpeechServer,
    described,
    heard,
    said,
    speaking,
)
from usage.models import Outcome

SECRETS = ["sk-upstream-secret-0123456789", "Traceback", "10.0.0.5", "Guarded words"]

BEFORE_A_SOUND: list[tuple[str, type[EngineError]]] = [
    *(
        (f"status@{status}", EngineError)
        for status in (400, 401, 403, 404, 413, 418, 422, 500, 502)
    ),
    *((f"status@{status}", EngineTimeout) for status in (408, 504)),
    *((f"status@{status}", EngineFull) for status in (429, 503)),
    *(
        (fault, EngineProtocolError)
        for fault in ("status@304", "redirect", "html", "json", "empty")
    ),
    *((fault, EngineProtocolError) for fault in ("compressed", "silence", "short")),
    *((fault, EngineUnavailable) for fault in ("cut", "reset")),
]


async def failure_of(server: SpeechServer, **changes: Any) -> tuple[EngineError, int]:
    """The failure of an utterance, and the number of pieces before it."""
    pieces: list[bytes] = []

    async def listen(engine: HttpEngine) -> None:
        spoken = engine.speak(said("Guarded words are spoken here, one by one."))
        async for piece in spoken:
            pieces.append(piece)  # noqa: PERF401  # the pieces before a failure count

    async with speaking(described(server.url, **changes)) as engine:
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
    failure, pieces = await failure_of(server, profile=profile, model=f"t [[sim fault={fault}]]")

    assert (failure.outcome, pieces) == (kind.outcome, 0)
    assert isinstance(failure, kind)
    if kind is EngineError:
        assert not isinstance(failure, EngineFull | EngineTimeout | EngineProtocolError)
    told = str(failure) + caplog.text
    assert not [secret for secret in SECRETS if secret in told]


CHUNKED = {"extra_fields": {"stream_format": "audio"}}
SLOW = {"first_byte_seconds": 0.4}
STREAMED = "piece=1000 pace=4"
LATER: list[tuple[str, str, type[EngineError], dict[str, Any], bool]] = [
    *(
        ("file", fault, EngineUnavailable, extra, False)
        for fault in ("fault=cut@9000", "fault=reset@9000")
        for extra in ({}, CHUNKED)
    ),
    *(
        (profile, f"fault={fault} {STREAMED}", EngineUnavailable, {}, True)
        for fault in ("cut@9000", "reset@9000")
        for profile in ("pcm", "sse")
    ),
    *(
        (profile, f"fault={fault}", EngineTimeout, SLOW, False)
        for fault in ("hang", "hang@6000", "slow_header@5")
        for profile in PROFILES
    ),
    *(
        (profile, "pace=0.2 piece=1000", EngineTimeout, {"total_seconds": 0.6}, False)
        for profile in PROFILES
    ),
    ("file", "fault=huge", EngineProtocolError, CHUNKED, True),
    ("pcm", "fault=huge", EngineProtocolError, {}, True),
    ("sse", "fault=huge", EngineProtocolError, {}, True),
    ("file", "fault=garbage", EngineProtocolError, {}, False),
    ("file", "fault=unframed@9000", EngineProtocolError, {}, False),
    ("pcm", "fault=odd", EngineProtocolError, {}, False),
    ("sse", "fault=odd", EngineProtocolError, {}, False),
    ("sse", "fault=no_done", EngineProtocolError, {}, False),
    ("sse", "fault=bad_event", EngineProtocolError, {}, False),
    ("sse", "fault=error_event@0", EngineError, {}, False),
    ("sse", "fault=error_event@3", EngineError, {}, False),
]
"""Answers that are truncated, idle, without an end, or invalid; the last says that sound came before."""


@pytest.mark.parametrize(("profile", "behaves", "kind", "changes", "has_sound"), LATER)
async def test_an_answer_that_goes_wrong_has_its_error(
    server: SpeechServer,
    profile: str,
    behaves: str,
    kind: type[EngineError],
    changes: dict[str, Any],
    has_sound: bool,
) -> None:
    model = f"t [[sim {behaves}]]"
    failure, pieces = await failure_of(server, profile=profile, model=model, **changes)

    assert (type(failure), failure.outcome) == (kind, kind.outcome)
    assert pieces or not has_sound


async def test_a_slow_listener_does_not_use_up_the_timeouts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An hour passes between two pieces that are there at once."""
    loop, timeouts = asyncio.get_running_loop(), Timeouts(60.0, 60.0)
    now = loop.time
    for hours in range(3):
        monkeypatch.setattr(loop, "time", lambda hours=hours: now() + 3600 * hours)
        await timeouts.wait(asyncio.sleep(0))


async def test_a_wav_file_may_end_with_its_connection(server: SpeechServer) -> None:
    whole = "t [[sim fault=unframed]]"
    async with speaking(described(server.url, model=whole)) as engine:
        assert await heard(engine, said("Guarded words."))


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


PCM = bytes(range(1, 251)) * 40
ANSWER = sized(PCM, 200, "content-type: audio/pcm")
CONNECTIONS: dict[str, tuple[list[list[Step]], list[type[EngineError] | None], int]] = {
    "a kept connection that was closed is replaced once": (
        [[ANSWER], [End.FIN], [ANSWER]],
        [None] * 2,
        2,
    ),
    "a request on a new connection is not retried": ([[End.FIN]], [EngineUnavailable], 1),
    "a request is not retried after its answer began": (
        [[ANSWER], [ANSWER[:2000], End.FIN]],
        [None, EngineUnavailable],
        1,
    ),
    "an answer that is not HTTP is an error": (
        [[b"SSH-2.0-OpenSSH_9.6\r\n\r\n", End.FIN]],
        [EngineProtocolError],
        1,
    ),
}
"""What the server does at each request, the failure of each utterance, and the connections."""


@pytest.mark.parametrize("case", CONNECTIONS)
async def test_only_a_request_on_a_kept_connection_is_retried(case: str) -> None:
    scripts, failures, connections = CONNECTIONS[case]
    server = ScriptedServer([*scripts])
    async with running(server), speaking(described(server.url(""), "pcm")) as engine:
        for failure in failures:
            if failure is None:
                assert await heard(engine, said("One.")) == PCM
            else:
                with pytest.raises(failure):
                    await heard(engine, said("One."))
    assert (server.connections, len(server.requests)) == (connections, len(scripts))


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
    await server.runs(0)
