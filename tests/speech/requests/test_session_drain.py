"""WebSocket sessions while the server drains before it stops."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import httpx2

from tests.support.live import NO_TLS, Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount
from tests.support.until import until

SENTENCE = "The morning train was late again, so we walked along the river for a while.\n"
SLOW = f"[[sim pace:1]] {SENTENCE}"
"""Takes the simulated speech server about as long as it sounds: some seconds."""


def begin_drain(speech: SpeechAccount) -> float:
    """Send SIGTERM and wait until the server drains; return the time of the signal."""
    sent_at = time.monotonic()
    speech.gateway.command.process.send_signal(signal.SIGTERM)
    until(lambda: is_draining(speech))
    return sent_at


def is_draining(speech: SpeechAccount) -> bool:
    """Whether the server drains or has ended, as it does when no session is left."""
    try:
        return httpx2.get(f"{speech.url}/health", verify=NO_TLS).status_code == 503
    except httpx2.TransportError:
        return True


def assert_told_to_go_elsewhere(session: Conversation, frames: int) -> None:
    messages = session.rest()
    assert [type(each) for each in messages] == [*[bytes] * frames, dict]
    error = messages[-1]
    assert isinstance(error, dict)
    assert error["error"]["type"] == "proxy_error"
    assert "shutting down" in error["error"]["message"]
    assert session.close_code == 1012


def assert_interrupted(speech: SpeechAccount, sentences: int, characters: int) -> None:
    row = speech.row_when_written()
    assert (row.outcome, row.http_status, row.close_code) == ("interrupted", 101, 1012)
    assert (row.sentences, row.characters) == (sentences, characters)


def test_a_session_before_start_ends_at_once_when_the_server_drains(
    start_gateway: Callable[..., Gateway],
) -> None:
    speech = speech_account(start_gateway())
    with speech.connect() as socket:
        begin_drain(speech)
        assert_told_to_go_elsewhere(Conversation(socket), frames=0)

    assert speech.gateway.command.process.wait(60) == 0
    assert speech.rows() == []


def test_a_session_with_nothing_left_to_speak_ends_at_once_when_the_server_drains(
    start_gateway: Callable[..., Gateway],
) -> None:
    """An incomplete sentence is neither spoken nor charged."""
    speech = speech_account(start_gateway())
    with speech.session() as session:
        session.text(f"{SENTENCE}And then")
        session.frame()
        begin_drain(speech)
        assert_told_to_go_elsewhere(session, frames=0)

    assert_interrupted(speech, 1, len(SENTENCE))
    assert speech.gateway.command.process.wait(60) == 0


def test_a_session_speaks_its_accepted_sentences_before_it_ends(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    """Text and 'done' that come during the drain are ignored."""
    speech = speech_account(start_gateway())
    with speech.session(voice=remote["pcm"]) as session:
        session.text(SLOW * 2)
        session.frame()
        begin_drain(speech)
        session.text(SENTENCE * 3)
        session.done()
        assert_told_to_go_elsewhere(session, frames=1)

    assert_interrupted(speech, 2, 2 * len(SLOW))


def test_a_session_that_sent_done_ends_normally(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    speech = speech_account(start_gateway())
    with speech.session(voice=remote["pcm"]) as session:
        session.text(SLOW * 3)
        session.done()
        session.frame()
        begin_drain(speech)
        messages = session.rest()

        assert [type(each) for each in messages] == [bytes, bytes, dict]
        assert messages[-1] == {"type": "session.done"}
        assert session.close_code == 1000
    row = speech.row_when_written()
    assert (row.outcome, row.sentences, row.close_code) == ("success", 3, None)
    assert speech.gateway.command.process.wait(60) == 0


def test_a_session_can_be_cancelled_during_the_drain(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    speech = speech_account(start_gateway())
    with speech.session(voice=remote["pcm"]) as session:
        session.text(SLOW * 3)
        session.frame()
        begin_drain(speech)
        session.send(type="cancel")

        assert session.rest()[-1] == {"type": "session.done"}
        assert session.close_code == 1000
    assert speech.row_when_written().outcome == "success"


def test_a_session_that_outlasts_the_drain_gets_the_error_at_its_end(
    start_gateway: Callable[..., Gateway], remote: dict[str, str]
) -> None:
    speech = speech_account(start_gateway(SVC_DRAIN_SECONDS="1"))
    with speech.session(voice=remote["pcm"]) as session:
        session.text(SLOW * 6)
        session.done()
        session.frame()
        began = begin_drain(speech)
        messages = session.rest()

        assert session.close_code == 1012
        assert time.monotonic() - began >= 1
    assert isinstance(messages[-1], dict)
    row = speech.row_when_written()
    assert (row.outcome, row.close_code) == ("interrupted", 1012)
    assert row.sentences == len(messages)  # the first frame was read before, the last is the error
    assert speech.gateway.command.process.wait(60) == 0
