"""WebSocket sessions and requests while the server drains before it stops."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.support.live import NO_TLS, Gateway
from tests.support.served import refuses
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import TWO_SENTENCES, Conversation, SpeechAccount
from tests.support.until import until

SENTENCE = "The morning train was late again, so we walked along the river for a while.\n"
SLOW = f"[[sim pace:1]] {SENTENCE}"
"""Takes the simulated speech server about as long as it sounds: some seconds."""


class Case(NamedTuple):
    """A session that has got a frame when the signal comes, and what becomes of it."""

    voice: str
    text: str
    is_done: bool
    during: tuple[dict[str, str], ...]
    """Messages after the signal."""
    frames: int | None
    """Frames after the signal; None: as many as there were."""
    characters: int | None


CASES = {
    "text that comes during the drain is spoken": Case(
        "ava",
        f"{SENTENCE}And then",
        False,
        ({"type": "text", "text": " we went home."}, {"type": "done"}),
        1,
        len(SENTENCE) + len("And then we went home."),
    ),
    "one that sent 'done' goes on": Case("pcm", SLOW * 3, True, (), 2, 3 * len(SLOW)),
    "one can be cancelled": Case("pcm", SLOW * 3, False, ({"type": "cancel"},), None, None),
}


def begin_drain(gateway: Gateway) -> None:
    """Send SIGTERM and wait until the server drains, or has ended as without any session."""

    def is_draining() -> bool:
        try:
            url = f"http://127.0.0.1:{gateway.speech_port}/health"
            return httpx2.get(url, verify=NO_TLS).status_code == 503
        except httpx2.TransportError:
            return True

    gateway.command.process.send_signal(signal.SIGTERM)
    until(is_draining)


def assert_told_to_go_elsewhere(message: Any, session: Conversation) -> None:
    assert message["error"]["type"] == "proxy_error"
    assert "shutting down" in message["error"]["message"]
    assert session.close_code == 1012


def assert_ends(case: Case, speech: SpeechAccount, session: Conversation) -> None:
    messages = session.rest()
    frames = [each for each in messages if isinstance(each, bytes)]
    told, last = (each for each in messages if not isinstance(each, bytes))
    assert told["type"] == "draining"
    assert 0 < told["seconds"] <= 30
    assert (last, session.close_code) == ({"type": "session.done"}, 1000)
    assert len(frames) == (len(frames) if case.frames is None else case.frames)
    row = speech.row_when_written()
    assert (row.outcome, row.close_code) == ("success", None)
    if case.characters is not None:
        assert (row.sentences, row.characters) == (len(frames) + 1, case.characters)


def test_a_session_is_told_that_the_server_drains_and_goes_on(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    gateway = start_gateway(SVC_DRAIN_SECONDS="30")
    late, voices = speech_account(gateway), {"ava": "ava", **remote}
    opened: list[tuple[Case, SpeechAccount, Conversation]] = []
    with ExitStack() as stack:
        before_start = Conversation(stack.enter_context(late.connect()))
        for case in CASES.values():
            speech = speech_account(gateway)
            session = stack.enter_context(speech.session(voice=voices[case.voice]))
            session.text(case.text)
            if case.is_done:
                session.done()
            opened.append((case, speech, session))
        for _, _, session in opened:
            session.frame()
        begin_drain(gateway)
        for case, _, session in opened:
            for message in case.during:
                session.send(**message)
        before_start.send(type="start", voice="ava")
        assert before_start.receive()["type"] == "ready"
        assert before_start.receive()["type"] == "draining"
        before_start.text(SENTENCE)
        before_start.done()
        assert before_start.rest()[-1] == {"type": "session.done"}
        for each in opened:
            assert_ends(*each)

    assert late.row_when_written().outcome == "success"
    assert gateway.command.process.wait(60) == 0


@pytest.mark.long
def test_what_outlasts_the_drain_is_interrupted(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    gateway = start_gateway(SVC_DRAIN_SECONDS="1")
    talker, asker = speech_account(gateway), speech_account(gateway)
    text = f"[[sim pace:1]] {TWO_SENTENCES * 4}"
    with ExitStack() as stack:
        session = stack.enter_context(talker.session(voice=remote["pcm"]))
        session.text(SLOW * 6)
        session.done()
        session.frame()
        raw = stack.enter_context(asker.asking(input=text, voice=remote["pcm"]))
        assert b"200 OK" in raw.recv(1000)
        began = time.monotonic()
        begin_drain(gateway)
        until(lambda: refuses(asker.url))
        while raw.recv(65536):
            pass
        told, *frames, last = session.rest()
        assert told == {"type": "draining", "seconds": 1}
        assert time.monotonic() - began >= 1
        assert_told_to_go_elsewhere(last, session)
    row = talker.row_when_written()
    [stream] = until(lambda: [row for row in asker.rows() if row.voice == remote["pcm"]])

    assert (row.outcome, row.close_code) == ("interrupted", 1012)
    assert row.sentences == 1 + len(frames)
    assert (stream.outcome, stream.http_status) == ("interrupted", 200)
    assert gateway.command.process.wait(60) == 0
