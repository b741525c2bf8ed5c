"""The time to parse a text, its place among the checks, and the longest file."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

import pytest

from core.errors import InvalidField
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH
from speech.requests.speaking import LONGEST_FILE, HeldSound, whole_sound
from speech.synthesis.script import read_script
from speech.wire import LONGEST_INPUT
from tests.support.live import Gateway
from tests.support.speech.accounts import speech_account
from tests.support.speech.caller import SpeechAccount

TIMES = 7
"""A text of signs costs twice a plain one, and one whose every word ends with a dot five times as much,
because each dot may end one of the abbreviations; they cost 10 to 15 times as much before."""


def cpu_seconds(unit: str) -> float:
    """The best time of five to parse a text of the greatest length."""
    text = (unit * LONGEST_INPUT)[:LONGEST_INPUT]
    taken = []
    for _ in range(5):
        begun = time.thread_time()
        read_script(text)
        taken.append(time.thread_time() - begun)
    return min(taken)


@pytest.mark.parametrize("unit", ["a. b ", "1 !", "1 <"])
def test_no_text_takes_far_longer_than_a_plain_one(unit: str) -> None:
    assert cpu_seconds(unit) < TIMES * cpu_seconds("hello world. ")


WORDLESS = "<!-- hidden -->"
"""A text whose words are all markup, which only reading its sentences shows."""


def test_a_text_is_parsed_only_after_its_request_was_reserved(gateway: Gateway) -> None:
    speech = speech_account(gateway, speech_requests_per_minute=1)
    refused = speech.speak(WORDLESS)
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    # Its reservation was refunded.
    assert speech.speak("Hi.").status_code == 200
    assert speech.speak(WORDLESS).headers["x-quota-reason"] == "requests_per_minute"


def test_a_flood_of_ignored_values_is_refused(speech: SpeechAccount) -> None:
    body = {"voice": "ava", "input": "Hi.", "x": [[]] * 1001}
    answer = speech.post(body)
    assert answer.status_code == 400
    assert "more than 1000 objects and arrays" in answer.json()["error"]["message"]
    assert speech.post({"voice": "ava", "input": "[" * 1500 + "Hi."}).status_code == 200


async def _seconds(count: int) -> AsyncGenerator[bytes, None]:
    second = bytes(SAMPLE_RATE * SAMPLE_WIDTH)
    for _ in range(count):
        yield second


async def test_a_file_lasts_half_an_hour_at_most() -> None:
    held = HeldSound("")
    whole = await whole_sound(_seconds(LONGEST_FILE), "input", held)
    assert sum(map(len, whole)) == LONGEST_FILE * SAMPLE_RATE * SAMPLE_WIDTH
    with pytest.raises(InvalidField, match="more than 30 minutes") as caught:
        await whole_sound(_seconds(LONGEST_FILE + 1), "input", HeldSound("b"))
    held.release_all()
    assert caught.value.param == "input"
