"""SSML in sessions, for which ``start`` asks: the sentences, charges and word times of a document."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import Conversation, SpeechAccount, seconds

DOCUMENT = (
    "<speak><s>It is <sub alias='almost ten'>~10</sub>.</s> <break time='1s'/>Room"
    " <say-as interpret-as='digits'>48</say-as> &amp; <b>bye</b>.</speak>"
)
FIRST, SECOND = "It is almost ten. ", "Room 48 &amp; bye."
"""What is metered of it."""


def send(session: Conversation, text: str) -> None:
    """Send ``text`` cut anywhere, also within tags."""
    for at in range(0, len(text), 7):
        session.text(text[at : at + 7])


def test_a_document_is_spoken_sentence_by_sentence_and_charged_without_its_tags(
    speech: SpeechAccount,
) -> None:
    with speech.session(ssml=True) as session:
        send(session, DOCUMENT)
        session.done()
        first, second, done = session.rest()
        assert session.close_code == 1000

    assert done == {"type": "session.done"}
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    assert seconds(second) > 1.5
    row = speech.row_when_written()
    assert (row.outcome, row.sentences) == ("success", 2)
    assert row.characters == len(FIRST + SECOND) == speech.spoken_today()


def test_its_words_are_found_in_the_document(speech: SpeechAccount) -> None:
    words: list[dict[str, Any]] = []
    with speech.session(ssml=True, timestamps="word", keep_open=True) as session:
        for document in (DOCUMENT, " " + DOCUMENT):
            send(session, document)
            session.done()
            for _ in range(2):
                words += session.receive()["words"]
                session.frame()
            done = session.receive()
            assert (done["type"], done["characters"]) == ("utterance.done", len(FIRST + SECOND))
            found = [(word["text"], document[word["from"] : word["to"]]) for word in words]
            assert found == [
                *((word, word) for word in ("It", "is", "almost", "ten", "Room")),
                *(("four", "48"), ("eight", "48"), ("and", "&amp;"), ("bye", "bye")),
            ]
            words.clear()


def test_what_was_cleared_tells_the_text_that_was_charged(
    gateway: Gateway, remote: dict[str, str]
) -> None:
    speech = speech_account(gateway)
    slow = "<p>We [[sim pace:2]] walked <b>along</b> the river, all day long.</p>"
    with speech.session(voice=remote["pcm"], keep_open=True, ssml=True) as session:
        session.text(f"<speak><s>Room <say-as interpret-as='digits'>48</say-as>.</s>{slow * 5}")
        session.frame()
        session.send(type="clear")
        while isinstance(message := session.socket.recv(60), bytes):
            pass
        assert '"type":"cleared"' in message
        session.text("Plain text <speak>.")
        session.done()
        session.frame()
        assert session.receive()["characters"] == len("Plain text <speak>.")
        session.send(type="close")
        assert session.rest() == [{"type": "session.done"}]

    cleared = json.loads(message)
    assert cleared["text"].startswith("Room 48.")
    assert "<" not in cleared["text"]
    assert len(cleared["text"]) == cleared["characters"]
    row = speech.row_when_written()
    assert row.characters == cleared["characters"] + 19 == speech.spoken_today()


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("<speak>One. Two. <p>Three.", "this element is not closed"),
        ("<speak>One. Two. Tom & Jerry</speak>", "& begins no entity"),
        ("<speak>One. Two.</speak> Three.", "text after </speak>"),
        ("<speak><phoneme ph='a%'>a</phoneme></speak>", "'ph' of <phoneme>"),
        ("<speak> </speak>", "no words"),
    ],
)
def test_a_broken_document_ends_the_session_with_the_words_of_http(
    speech: SpeechAccount, text: str, mistake: str
) -> None:
    with speech.session(ssml=True) as session:
        send(session, text)
        session.done()
        error = session.rest()[-1]
        assert session.close_code == 4400

    assert isinstance(error, dict)
    told = speech.speak(text).json()["error"]["message"]
    assert mistake in told
    assert error["error"]["message"].removeprefix("'text': ") == told.removeprefix("'input': ")


def test_without_the_choice_a_document_is_text_as_any_other(speech: SpeechAccount) -> None:
    with speech.session() as session:
        session.text("<speak>Hello.</speak>")
        session.done()
        session.rest()

    assert speech.row_when_written().characters == len("<speak>Hello.</speak>")


def test_the_choice_is_true_or_false(speech: SpeechAccount) -> None:
    with speech.connect() as socket:
        session = Conversation(socket)
        session.send(type="start", voice="ava", ssml="yes")
        [error] = session.rest()
        assert session.close_code == 4400

    assert isinstance(error, dict)
    assert "'ssml' must be true or false" in error["error"]["message"]


def test_tags_of_what_was_spoken_are_not_taken_for_unspoken_text(
    gateway_with: Callable[..., Gateway],
) -> None:
    """The tags alone are more than the text that a session may leave unspoken here."""
    gateway = gateway_with(SVC_REFUSED_REQUESTS_PER_MINUTE="10")
    speech = speech_account(gateway, speech_requests_per_minute=10)
    document = "<speak>" + "<b><i>Yes</i></b> " * 30 + "</speak>"
    with speech.session(ssml=True, keep_open=True) as session:
        for _ in range(60):
            session.text(document)
            session.done()
            session.frame()
            assert session.receive()["type"] == "utterance.done"
        session.send(type="close")
        assert session.rest() == [{"type": "session.done"}]
