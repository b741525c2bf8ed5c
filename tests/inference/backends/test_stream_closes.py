"""What the gateway learns from the ends of streams about a backend's connections, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from inference.backends.connections import Connections
from inference.backends.stream_closes import REMEMBERED_SECONDS, StreamCloses
from inference.catalog.snapshot import BackendRef, Timeouts
from inference.wire.dialects import KeepAlive, OutputCapField, RunningUsage
from svc_project.lib.backends.outbound import request_head
from tests.support.model_servers.scripted import (
    CHUNKED_HEAD,
    GOOD,
    Pause,
    Script,
    ScriptedServer,
    Step,
    body,
    chunked,
    completion,
    frames,
    head,
    scripted_server,
)
from tests.support.servers.tcp_proxy import End

BACKEND = BackendRef(
    id="one",
    name="one",
    base_url="http://127.0.0.1:1/v1",
    headers={},
    max_concurrency=1,
    timeouts=Timeouts(1, 1, 1, 1),
    running_usage=RunningUsage.NONE,
    output_cap_field=OutputCapField.BOTH,
    extra_fields=b"",
    keep_alive=KeepAlive.AUTO,
)
NOT_AT_ONCE = Pause(0.05)
"""A pause before a stream's last bytes: an answer in one piece is not observed."""
EVENTS = frames(*GOOD)
STREAM: list[Step] = [CHUNKED_HEAD, *map(chunked, EVENTS), NOT_AT_ONCE, b"0\r\n\r\n"]


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def closes(clock: Clock) -> StreamCloses:
    return StreamCloses(clock)


def learn(closes: StreamCloses, backend: BackendRef = BACKEND) -> None:
    told = [closes.record_closed(backend) for _ in range(4)]
    assert told == [False, False, True, False], "it is news once"


def test_three_closes_in_a_row_are_learnt(closes: StreamCloses) -> None:
    assert not closes.is_expected(BACKEND)

    learn(closes)

    assert closes.is_expected(BACKEND)
    assert not closes.is_unknown(BACKEND)


def test_an_observation_expires_and_can_be_learnt_again(closes: StreamCloses, clock: Clock) -> None:
    learn(closes)

    clock.seconds += REMEMBERED_SECONDS - 1
    assert closes.is_expected(BACKEND)
    clock.seconds += 1

    assert not closes.is_expected(BACKEND)
    assert closes.is_unknown(BACKEND)
    learn(closes)


def test_restarts_that_lie_far_apart_teach_nothing(closes: StreamCloses, clock: Clock) -> None:
    for _ in range(5):
        assert not closes.record_closed(BACKEND)
        clock.seconds += REMEMBERED_SECONDS

    assert not closes.is_expected(BACKEND)


def test_an_observation_belongs_to_a_backend_and_its_address(closes: StreamCloses) -> None:
    learn(closes)

    assert not closes.is_expected(replace(BACKEND, id="another"))
    assert not closes.is_expected(replace(BACKEND, base_url="http://127.0.0.1:2/v1"))
    assert closes.is_expected(replace(BACKEND, name="renamed"))


def test_one_connection_that_was_kept_settles_it_until_one_is_stale(closes: StreamCloses) -> None:
    closes.record_closed(BACKEND)
    closes.record_kept(BACKEND)
    assert not closes.is_unknown(BACKEND)
    assert not closes.record_closed(BACKEND)

    closes.record_stale(BACKEND)

    learn(closes)


def test_a_stale_connection_keeps_the_observation(closes: StreamCloses) -> None:
    learn(closes)

    closes.record_stale(BACKEND)

    assert closes.is_expected(BACKEND)


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


def new_connections(server: ScriptedServer, ends: list[list[Step]], then: int) -> int:
    """Count the new connections of ``then`` valid streams after streams with ``ends``."""

    async def ask(connections: Connections) -> None:
        backend = replace(BACKEND, base_url=server.base_url)
        request = request_head("POST", server.base_url + "/chat/completions", {})
        response = await connections.post(backend, request, b'{"stream":true}', streamed=True)
        await response.read_all(1_000_000)

    async def main() -> int:
        connections = Connections()
        try:
            for steps in ends:
                server.say(Script(steps), Script([body(completion())]))
                await ask(connections)
                await asyncio.sleep(0.3)  # longer than a connection is watched after a stream
            server.say(Script(STREAM), Script([body(completion())]))
            before = server.connections
            for _ in range(then):
                await ask(connections)
            return server.connections - before
        finally:
            await connections.close()

    return asyncio.run(main())


SILENT_CLOSE: list[Step] = [*STREAM, End.FIN]
ANNOUNCED: dict[str, list[Step]] = {
    "connection: close": [
        head(200, "text/event-stream", "transfer-encoding: chunked", "Connection: Close"),
        *SILENT_CLOSE[1:],
    ],
    "no length": [head(200, "text/event-stream"), *EVENTS, NOT_AT_ONCE, End.FIN],
    "HTTP/1.0": [
        head(200, "text/event-stream").replace(b"HTTP/1.1", b"HTTP/1.0"),
        *EVENTS,
        NOT_AT_ONCE,
        End.FIN,
    ],
}


def test_a_server_that_closes_silently_gets_a_new_connection_for_each_stream(
    scripted: ScriptedServer,
) -> None:
    assert new_connections(scripted, [SILENT_CLOSE] * 3, then=3) == 3


@pytest.mark.parametrize("announced", ANNOUNCED)
def test_a_close_that_was_announced_teaches_nothing(
    scripted: ScriptedServer, announced: str
) -> None:
    assert new_connections(scripted, [ANNOUNCED[announced]] * 3, then=3) == 1
