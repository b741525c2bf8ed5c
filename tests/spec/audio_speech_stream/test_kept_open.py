"""Sessions that are kept open: several utterances, interruptions, and what is charged for them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from speech.requests.session_bounds import UNSPOKEN_PER_UNIT
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount, seconds
from tests.support.until import until

FIRST = "The morning train was late again. "
SECOND = "We walked along the river. "
DONE = {"type": "session.done"}


def told(session: Conversation, kind: str) -> tuple[dict[str, Any], int]:
    """The next message of ``kind``, and the frames before it."""
    frames = 0
    while isinstance(message := session.socket.recv(60), bytes):
        frames += 1
    found: dict[str, Any] = json.loads(message)
    assert found["type"] == kind, found
    return found, frames


def utterance(session: Conversation, text: str) -> None:
    session.text(text)
    session.done()


def test_a_session_has_several_utterances_and_one_row(speech: SpeechAccount) -> None:
    with speech.session(keep_open=True) as session:
        utterance(session, FIRST + "[pause]" + SECOND)
        first, frames = told(session, "utterance.done")
        assert (first["sentences"], frames) == (2, 2)
        # The second is sent before the first was spoken.
        utterance(session, FIRST)
        utterance(session, "")
        session.text(SECOND)
        session.send(type="close")
        later = [told(session, "utterance.done")[0]["characters"] for _ in range(3)]
        assert session.rest() == [DONE]
        assert session.close_code == 1000

    assert first["characters"] == len(FIRST + SECOND)
    assert later == [len(FIRST), 0, len(SECOND)]
    row = speech.row_when_written()
    assert (row.outcome, row.sentences) == ("success", 4)
    assert row.characters == first["characters"] + sum(later) == speech.spoken_today()


def test_what_is_cleared_is_neither_spoken_nor_charged(
    gateway: Gateway, remote: dict[str, str]
) -> None:
    """The day's characters are just enough for what is spoken."""
    slow = f"[[sim pace:2]] {SECOND}"
    speech = speech_account(
        gateway, speech_characters_per_day=len(FIRST + 2 * slow), speech_requests_per_minute=1
    )
    with speech.session(voice=remote["pcm"], keep_open=True) as session:
        session.text(FIRST + 9 * slow[:-1])
        session.done()
        utterance(session, FIRST)
        session.frame()
        session.send(type="clear")
        cleared, _ = told(session, "cleared")
        utterance(session, slow)
        done, frames = told(session, "utterance.done")
        session.send(type="close")
        assert session.rest() == [DONE]

    assert (FIRST + 9 * slow).startswith(cleared["text"])
    assert cleared["text"].startswith(FIRST)
    assert cleared["characters"] == len(cleared["text"])
    assert (done["sentences"], done["characters"], frames) == (1, len(slow), 1)
    row = speech.row_when_written()
    assert (row.outcome, row.sentences) == ("success", cleared["sentences"] + 1)
    assert row.characters == cleared["characters"] + len(slow) == speech.spoken_today()


def test_an_interrupted_embedded_voice_is_silent_at_once(speech: SpeechAccount) -> None:
    waits = []
    with speech.session(keep_open=True) as session:
        for _ in range(5):
            session.text((FIRST + SECOND) * 60)
            session.frame()
            began = time.perf_counter()
            session.send(type="clear")
            told(session, "cleared")
            waits.append(time.perf_counter() - began)
        # No frame of the dropped text comes later.
        utterance(session, FIRST)
        assert told(session, "utterance.done")[1] == 1
        session.send(type="cancel")
        assert session.rest() == [DONE]

    assert min(waits) < 0.05, waits


def test_silence_between_utterances_ends_no_session(
    start_gateway: Callable[..., Gateway],
) -> None:
    speech = speech_account(start_gateway(SVC_SPEECH_IDLE_SECONDS="1"))
    with speech.session(keep_open=True) as session:
        for ended in (None, "utterance.done", "cleared"):
            if ended == "utterance.done":
                utterance(session, FIRST)
            elif ended == "cleared":
                session.text(FIRST)
                session.send(type="clear")
            if ended is not None:
                told(session, ended)
            time.sleep(1.5)
        session.text("Half a sen")
        idle = session.rest()[-1]
        assert session.close_code == 4408

    assert isinstance(idle, dict)
    assert "idle" in idle["error"]["message"]


@pytest.mark.parametrize("ended_by", ["clear", "done"])
def test_text_that_is_never_spoken_is_not_parsed_for_free(
    gateway_with: Callable[..., Gateway], ended_by: str
) -> None:
    """A session gets as many refused requests as others do, 10 a minute, then it ends."""
    gateway = gateway_with(SVC_REFUSED_REQUESTS_PER_MINUTE="10")
    speech = speech_account(gateway, speech_requests_per_minute=10)
    two_units = "[sad] . " * (2 * UNSPOKEN_PER_UNIT // 8)
    answers: list[dict[str, Any]] = []
    with speech.session(keep_open=True) as session:
        while not answers or answers[-1]["type"] != "error":
            with suppress(ConnectionClosed):  # its error was sent before
                session.text(two_units)
                session.send(type=ended_by)
            answers.append(session.receive())
        assert session.close_code == 4429

    assert "refused" in answers[-1]["error"]["message"]
    assert 5 <= len(answers) < 15
    assert {answer["characters"] for answer in answers[:-1]} == {0}
    assert speech.row_when_written().characters == 0


def test_what_others_were_refused_ends_no_conversation(
    gateway_with: Callable[..., Gateway],
) -> None:
    gateway = gateway_with(SVC_REFUSED_REQUESTS_PER_MINUTE="10")
    speech = speech_account(gateway, speech_requests_per_minute=10)
    with speech.session(keep_open=True) as session:
        while speech.post({"voice": "ava"}).status_code != 429:
            pass
        utterance(session, FIRST)
        assert told(session, "utterance.done")[1] == 1
        session.text(FIRST)
        session.send(type="clear")
        told(session, "cleared")


@pytest.mark.parametrize("keep_open", [False, True])
def test_a_disconnected_client_is_charged_for_the_sent_sentences(
    gateway: Gateway, remote: dict[str, str], keep_open: bool
) -> None:
    speech = speech_account(gateway, speech_characters_per_day=10 * len(FIRST))
    with speech.session(voice=remote["pcm"], keep_open=keep_open) as session:
        utterance(session, FIRST * 8)
        assert seconds(session.frame()) > 0.5
    row = speech.row_when_written()

    assert (row.outcome, row.http_status, row.close_code) == ("client_disconnected", 499, None)
    assert row.sentences > 0
    assert row.characters == row.sentences * len(FIRST)
    until(lambda: speech.spoken_today() == row.characters)
