"""A text in a script that the voice cannot read is an error, and nothing is charged for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount, seconds
from tests.support.speech.errors import kind_of

CHINESE = "这是一个中文句子。"
RUSSIAN = "Это русское предложение."
ENTITIES = "&nbsp;" * 20


def assert_is_unread(error: dict[str, Any], script: str | None) -> None:
    assert error["type"] == "invalid_request_error"
    if script is None:
        assert "no words that the voice can speak" in error["message"]
        return
    assert f"cannot read the {script} script" in error["message"]
    assert "GET /v1/audio/voices" in error["message"]


@pytest.mark.parametrize(
    ("text", "script", "fields"),
    [
        (CHINESE, "Chinese", {"response_format": "wav"}),
        (f"[pause] {RUSSIAN} — [laughs] & {RUSSIAN}", "Cyrillic", {"response_format": "pcm"}),
        (ENTITIES, None, {"stream_format": "sse"}),
        ("[pause] &#128512; [pause:3s] &#128512;", None, {"response_format": "pcm"}),
        ("\U0001f100\U0001f10a", None, {"response_format": "wav"}),
    ],
)
def test_an_unreadable_text_is_an_error_without_charge(
    gateway: Gateway, text: str, script: str | None, fields: dict[str, str]
) -> None:
    speech = speech_account(gateway, speech_characters_per_day=len(text))
    answer = speech.speak(text, **fields)

    assert kind_of(answer) == (400, "invalid_request_error")
    assert_is_unread(answer.json()["error"], script)
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.http_status) == ("client_error", 400)
    assert (row.characters, row.sentences, row.audio_ms) == (0, 0, 0)
    assert speech.spoken_today() == 0
    # The limiter, too, has every character left.
    assert speech.speak("a" * len(text)).status_code == 200


@pytest.mark.parametrize("name", ["wav", "pcm"])
def test_of_a_mixed_text_the_readable_part_is_spoken(speech: SpeechAccount, name: str) -> None:
    text = f"{CHINESE}\nThe morning train was late. {RUSSIAN}"
    answer = speech.speak(text, response_format=name)

    assert answer.status_code == 200
    assert speech.row(answer.headers["x-request-id"]).characters == len(text)
    alone = speech.speak("The morning train was late.")
    if name == "wav":
        assert seconds(answer.content) == pytest.approx(seconds(alone.content), abs=0.4)


def test_a_sign_or_letter_with_a_word_of_its_own_is_readable(speech: SpeechAccount) -> None:
    assert speech.speak("π").status_code == 200
    assert speech.speak("\u0972").status_code == 200
    assert speech.speak(f"{CHINESE} & {CHINESE}").status_code == 400


def test_a_speech_server_gets_texts_of_every_script_and_its_silence_costs_nothing(
    speech: SpeechAccount, remote: dict[str, str]
) -> None:
    answer = speech.speak(CHINESE, voice=remote["file"])

    # The simulated server speaks with an English voice.
    assert kind_of(answer) == (502, "proxy_error")
    row = speech.row(answer.headers["x-request-id"])
    assert (row.outcome, row.characters) == ("backend_protocol_error", 0)


FIRST, LAST = "Hello there.\n", "How are you today, my friend?"


@pytest.mark.parametrize(
    ("texts", "told", "spoken"),
    [
        ([FIRST, f"{RUSSIAN[:10]}\n", LAST], [bytes, "Cyrillic", bytes], FIRST + LAST),
        ([f"{CHINESE}\n", f"{ENTITIES}\n", RUSSIAN], ["Chinese", None, "Cyrillic"], ""),
        ([f"{CHINESE}\n", "Hi."], ["Chinese", bytes], "Hi."),
    ],
    ids=[
        "goes on after an unreadable sentence",
        "ends without charge",
        "needs no characters for it",
    ],
)
def test_a_session_with_unreadable_sentences(
    gateway: Gateway, texts: list[str], told: list[Any], spoken: str
) -> None:
    """It has as many characters of the day as are spoken."""
    speech = speech_account(gateway, speech_characters_per_day=len(spoken) or 40)
    with speech.session() as session:
        for text in texts:
            session.text(text)
        session.done()
        *messages, end = session.rest()
        assert session.close_code == 1000

    assert end == {"type": "session.done"}
    for message, expected in zip(messages, told, strict=True):
        if expected is bytes:
            assert isinstance(message, bytes)
        else:
            assert isinstance(message, dict)
            assert_is_unread(message["error"], expected)
    row = speech.row_when_written()
    sentences = told.count(bytes)
    assert (row.outcome, row.close_code) == ("success", None)
    assert (row.characters, row.sentences) == (len(spoken), sentences)
    assert bool(row.audio_ms) == bool(sentences)
    assert speech.spoken_today() == len(spoken)
    if not spoken:
        assert speech.speak("a" * 40).status_code == 200


def test_what_follows_an_unreadable_sentence_in_one_element_is_charged(
    gateway: Gateway,
) -> None:
    speech = speech_account(gateway)
    with speech.session(ssml=True) as session:
        session.text("<speak><say-as interpret-as='x'>中。 Hello there, my friend. ")
        session.text("This is not spoken for nothing.</say-as></speak>")
        session.done()
        unread, *frames, end = session.rest()

    assert isinstance(unread, dict)
    assert_is_unread(unread["error"], "Chinese")
    assert [type(frame) for frame in frames] == [bytes, bytes]
    assert end == {"type": "session.done"}
    row = speech.row_when_written()
    spoken = len("Hello there, my friend. This is not spoken for nothing.")
    assert (row.outcome, row.sentences) == ("success", 2)
    assert row.characters == spoken == speech.spoken_today()
