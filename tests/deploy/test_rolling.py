"""Two gateways behind each proxy of ``deploy/`` are restarted or reloaded under load, and nobody notices.

``SVC_TEST_ROLLING_STREAMS`` is how many streams run at a time (and a tenth as many sessions), and
``SVC_TEST_ROLLING_SECONDS`` how long the longest of them takes: 200 and 300 for a run of the size that
docs/operate/upgrade.md has figures of.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.deploy.conftest import Front
from tests.support.gateways import Served
from tests.support.hosts.load import Load, Sent
from tests.support.live import Command, Gateway
from tests.support.servers.shipped import (
    SHIPPED,
    Certificate,
    Shipped,
    running_shipped,
)
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SENTENCE, SpeechAccount
from tests.support.until import until
from usage.models import UsageRow

pytestmark = [pytest.mark.long, pytest.mark.timeout(0)]

STREAMS = int(os.environ.get("SVC_TEST_ROLLING_STREAMS", "20"))
LONGEST = float(os.environ.get("SVC_TEST_ROLLING_SECONDS", "20"))
SECONDS = (LONGEST / 15, LONGEST / 5, LONGEST / 2, LONGEST)
SESSIONS = max(4, STREAMS // 10)
LONGEST_CHAT = 1.0 if STREAMS >= 200 else 5.0
"""Seconds; the smaller runs stand beside other tests."""
SAMPLES_A_SECOND = 24_000
DRAIN = 660
"""The default of SVC_DRAIN_SECONDS, which the gateways of other tests do not have."""


class Sessions:
    """People who hear a text over the WebSocket to its end and then open a session for the next one.

    They run on an event loop: a thread that reads TLS from a socket that another one closes may read
    from the next socket of that number.
    """

    def __init__(self, front: Front, speaker: SpeechAccount) -> None:
        self._front, self._speaker = front, speaker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.complete = 0
        self.failed: list[str] = []

    def __enter__(self) -> Sessions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    async def _run(self) -> None:
        await asyncio.gather(*(self._speak_on() for _ in range(SESSIONS)))

    async def _speak_on(self) -> None:
        while not self._stop.is_set():
            try:
                await self._speak()
                self.complete += 1
            except (ConnectionClosed, InvalidHandshake, OSError, AssertionError) as error:
                self.failed.append(repr(error))

    async def _speak(self) -> None:
        address = self._front.speech_url.replace("https", "wss") + "/v1/audio/speech/stream"
        async with connect(
            address,
            ssl=self._front.certificate.context,
            additional_headers=self._speaker.headers,
            open_timeout=30,
            max_size=None,
            proxy=None,
        ) as socket:
            start = {"type": "start", "voice": "ava", "response_format": "pcm"}
            await socket.send(json.dumps(start))
            for _ in range(4):
                await socket.send(json.dumps({"type": "text", "text": SENTENCE + " "}))
            await socket.send(json.dumps({"type": "done"}))
            began, sound = time.monotonic(), 0
            async for message in socket:  # until it is closed with 1000
                sound += len(message) if isinstance(message, bytes) else 0
                assert '"error"' not in str(message)[:200], message
            assert sound, "nothing was spoken"
            heard = began + sound / 2 / SAMPLES_A_SECOND
            await asyncio.sleep(max(0.0, heard - time.monotonic()))


class Host:
    """A gateway that is started again at its port."""

    def __init__(self, served: Served) -> None:
        self._served, self.command = served, served.command

    def restart(self) -> None:
        """Restart it as a service manager does; returns once it takes connections again."""
        assert self.command.stop(DRAIN + 60) == 0
        served = self._served
        self.command = Command(
            ["serve", "--port", str(served.port), "--speech-port", str(served.speech_port)],
            served.environment,
            served.command.log,
        )
        self.command.wait_for(f"127.0.0.1:{served.port}")

    def reload(self) -> None:
        log = self.command.log
        before = log.read_text().count(" serves; ")
        self.command.process.send_signal(signal.SIGHUP)
        until(lambda: log.read_text().count(" serves; ") > before, 120)


@pytest.fixture(scope="module")
def hosts(behind: list[Served]) -> Iterator[list[Host]]:
    found = [Host(each) for each in behind]
    yield found
    for each in found:
        each.command.stop(DRAIN + 60)


@contextmanager
def under_load(front: Front, gateway: Gateway) -> Iterator[tuple[Sent, Sessions]]:
    """Chats, streams and sessions run while this is entered; afterwards all have ended."""
    speaker = speech_account(gateway)
    average = sum(SECONDS) / len(SECONDS)
    load = Load(
        f"{front.url}/v1",
        gateway.key,
        verify=front.certificate.context,
        streams_a_second=STREAMS / average,
        stream_seconds=SECONDS,
    )
    sessions = Sessions(front, speaker)
    with ExitStack() as stack:
        stack.enter_context(load)
        stack.enter_context(sessions)
        until(lambda: load.sent.streams >= STREAMS and sessions.complete >= SESSIONS, LONGEST + 120)
        yield load.sent, sessions
        further = load.sent.total + 60
        until(lambda: load.sent.total >= further, 120)
    print(f"\n{front.shipped}: {load.sent}; {sessions.complete} sessions")


def check(gateway: Gateway, sent: Sent, sessions: Sessions) -> None:
    assert (sent.failed, sent.cut, sessions.failed) == ([], [], [])
    assert sent.longest < LONGEST_CHAT
    rows = UsageRow.objects.filter(organization_id=gateway.organization.pk)
    until(lambda: rows.count() >= sent.total)
    assert rows.count() == sent.total


@pytest.fixture(params=SHIPPED, ids=str)
def front(
    request: pytest.FixtureRequest, behind: list[Served], made: Certificate
) -> Iterator[Front]:
    shipped: Shipped = request.param
    with running_shipped(shipped, made, [each.port for each in behind]) as port:
        yield Front(shipped, port, made)


def test_both_gateways_are_restarted(front: Front, hosts: list[Host], hidden: Gateway) -> None:
    with under_load(front, hidden) as (sent, sessions):
        for host in hosts:
            host.restart()
    check(hidden, sent, sessions)


def test_one_gateway_is_reloaded(front: Front, hosts: list[Host], hidden: Gateway) -> None:
    with under_load(front, hidden) as (sent, sessions):
        hosts[0].reload()
    check(hidden, sent, sessions)
