"""Word times: when each word of a frame is spoken, and which written one it stands for."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from itertools import pairwise
from typing import Any

import pytest
import soundfile

from core.ids import uuid7_hex
from speech.audio.pcm import SAMPLE_RATE
from speech.models import Voice
from tests.support.builders import speech_rows
from tests.support.speech.caller import Conversation, SpeechAccount, seconds
from tests.support.speech.speech_server import SpeechServer
from tests.support.until import until

FIRST = "In the [*old*](https://a.example) house [pause:1s] it cost $3.50, then. "
SECOND = "We left."
SPOKEN = "In the old house it cost three dollars and fifty cents then"
WRITTEN = ["In", "the", "old", "house", "it", "cost", *["$3.50"] * 5, "then"]


def assert_in_order(words: list[dict[str, Any]], since: float, until: float) -> None:
    """Words follow each other in the sound from ``since`` to ``until``, and each lasts."""
    assert all(set(word) == {"text", "start", "end", "from", "to"} for word in words)
    edges = [edge for word in words for edge in (word["start"], word["end"])]
    assert all(before <= after for before, after in pairwise(edges)), edges
    assert all(word["end"] - word["start"] > 0.02 for word in words), words
    assert since <= edges[0] < since + 0.3
    assert until - 0.3 < edges[-1] <= until


def assert_is_first(words: list[dict[str, Any]]) -> None:
    assert " ".join(word["text"] for word in words) == SPOKEN
    assert [FIRST[word["from"] : word["to"]] for word in words] == WRITTEN
    house, it = words[3], words[4]
    assert 0.9 < it["start"] - house["end"] < 1.1


@pytest.mark.parametrize("speed", [0.4, 1, 3])
def test_each_frame_comes_after_the_times_of_its_words(speech: SpeechAccount, speed: float) -> None:
    with speech.session(timestamps="word", speed=speed) as session:
        for piece in (FIRST[:10], FIRST[10:20], FIRST[20:] + SECOND):
            session.text(piece)
        session.done()
        first, frame, second, last_frame, done = session.rest()

    assert (first["type"], first["sentence"]) == ("timestamps", 0)  # type: ignore[call-overload]
    assert (second["type"], second["sentence"]) == ("timestamps", 1)  # type: ignore[call-overload]
    assert done == {"type": "session.done"}
    assert isinstance(frame, bytes)
    assert isinstance(last_frame, bytes)
    words, rest = first["words"], second["words"]  # type: ignore[call-overload]
    assert_in_order(words, 0, seconds(frame))
    assert_is_first(words)
    # The frame begins with the pause after the first sentence.
    assert_in_order(rest, 0.2, seconds(last_frame))
    assert [(FIRST + SECOND)[word["from"] : word["to"]] for word in rest] == ["We", "left"]


@pytest.mark.parametrize("name", ["pcm", "wav"])
def test_events_have_the_times_of_the_words_in_the_whole_sound(
    speech: SpeechAccount, name: str
) -> None:
    answer = speech.speak(
        FIRST + SECOND, response_format=name, stream_format="sse", timestamps="word"
    )
    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line]
    first, second = (each for each in events if each["type"] == "speech.audio.timestamps")
    sound = b"".join(b64decode(each["audio"]) for each in events if "audio" in each)
    length = len(sound) / 2 / SAMPLE_RATE
    if name == "wav":
        length = soundfile.info(io.BytesIO(sound)).duration

    assert (first["sentence"], second["sentence"]) == (0, 1)
    assert events[0] == first
    assert events[-1]["type"] == "speech.audio.done"
    assert_is_first(first["words"])
    assert_in_order(first["words"], 0, second["words"][0]["start"] - 0.2)
    assert_in_order(second["words"], first["words"][-1]["end"] + 0.2, length)
    assert speech.row(answer.headers["x-request-id"]).characters == len(FIRST + SECOND) - 10


def test_words_of_ssml_are_found_in_the_document(speech: SpeechAccount) -> None:
    text = (
        "<speak>It <b>is</b> <sub alias='almost ten'>~10</sub> <break time='300ms'/> now,\n"
        " Room <say-as interpret-as='digits'>48</say-as>.</speak>"
    )

    answer = speech.speak(text, response_format="pcm", stream_format="sse", timestamps="word")

    events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line]
    words = [word for each in events for word in each.get("words", [])]
    assert [(word["text"], text[word["from"] : word["to"]]) for word in words] == [
        *((word, word) for word in ("It", "is", "almost", "ten", "now", "Room")),
        *(("four", "48"), ("eight", "48")),
    ]


def test_a_word_with_sounds_of_its_own_is_timed_as_written(speech: SpeechAccount) -> None:
    lengths, words = [], []
    for ipa in ("a", "təmato" * 4):
        text = f"<speak>I say <phoneme alphabet='ipa' ph='{ipa}'>tomato</phoneme> now.</speak>"
        answer = speech.speak(text, response_format="pcm", stream_format="sse", timestamps="word")
        events = [json.loads(line[6:]) for line in answer.text.split("\n\n") if line]
        words = [word for each in events for word in each.get("words", [])]
        lengths.append(words[2]["end"] - words[2]["start"])
        assert [(word["text"], text[word["from"] : word["to"]]) for word in words] == [
            (word, word) for word in ("I", "say", "tomato", "now")
        ]
        assert speech.row(answer.headers["x-request-id"]).characters == len("I say tomato now.")

    assert lengths[0] < 0.4
    assert lengths[1] > 1.0


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"timestamps": "phoneme", "stream_format": "sse"}, "must be 'word'"),
        ({"timestamps": "word"}, "'stream_format'"),
        ({"timestamps": "word", "stream_format": "sse", "voice": "file"}, "speech server"),
    ],
)
def test_times_that_cannot_be_had_are_refused(
    speech: SpeechAccount, remote: dict[str, str], fields: dict[str, str], named: str
) -> None:
    voice = remote.get(fields.get("voice", ""), "ava")
    answer = speech.post({"input": SECOND, **fields, "voice": voice})

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert named in answer.json()["error"]["message"]


@pytest.mark.parametrize(("voice", "value"), [("pcm", "word"), ("ava", "letter")])
def test_a_session_for_times_that_cannot_be_had_is_refused(
    speech: SpeechAccount, remote: dict[str, str], voice: str, value: str
) -> None:
    with speech.connect() as socket:
        session = Conversation(socket)
        session.send(type="start", voice=remote.get(voice, voice), timestamps=value)
        [error] = session.rest()
        assert session.close_code == 4400

    assert isinstance(error, dict)
    assert "'timestamps'" in error["error"]["message"]
    assert speech.rows() == []


@pytest.mark.parametrize("word_times", ["header", "captions"])
def test_times_of_a_speech_server_are_passed_on(
    speech: SpeechAccount, speech_server: SpeechServer, word_times: str
) -> None:
    columns = {"word_times": word_times, "base_url": f"{speech_server.url}/v1"}
    backend = speech_rows.backend(name=f"timed-{uuid7_hex()}", **columns)
    voice = Voice.objects.create(id=backend.name, backend=backend, engine_voice="noah").pk
    until(lambda: voice in speech.voices())

    with speech.session(voice, timestamps="word", ssml=True) as session:
        session.text(f"<speak>{SECOND} It cost <b>$3.50</b>.</speak>")
        session.done()
        first, frame, second, _, _ = session.rest()
    assert isinstance(first, dict)
    assert isinstance(frame, bytes)
    assert isinstance(second, dict)
    text = f"<speak>{SECOND} It cost <b>$3.50</b>.</speak>"
    found = [(word["text"], text[word["from"] : word["to"]]) for word in second["words"]]
    assert found == [
        *(("It", "It"), ("cost", "cost")),
        *((word, "$3.50") for word in ("three", "dollars", "and", "fifty", "cents")),
    ]
    assert [word["text"] for word in first["words"]] == ["We", "left"]
    assert_in_order(first["words"], 0, seconds(frame))
    answer = speech.speak(SECOND, voice, stream_format="sse", timestamps="word")
    assert answer.text.startswith('data: {"type":"speech.audio.timestamps","sentence":0')


def test_the_times_of_an_utterance_count_from_its_first_character(speech: SpeechAccount) -> None:
    found = []
    with speech.session(keep_open=True, timestamps="word") as session:
        for text in ("[pause] One ", "And two "):
            session.text(text)
            session.done()
            timed = session.receive()
            found += [(word["text"], text[word["from"] : word["to"]]) for word in timed["words"]]
            session.frame()
            assert session.receive()["type"] == "utterance.done"

    assert found == [("One", "One"), ("And", "And"), ("two", "two")]
