"""Audible pauses, measured in the sound of the live gateway."""

from __future__ import annotations

import numpy as np
import pytest

from speech.audio.pcm import SAMPLE_RATE, samples
from speech.synthesis.sentence import LONGEST_UTTERANCE
from speech.text.sentences import clauses
from tests.support.speech.caller import SpeechAccount, decoded
from tests.support.speech.listening import still_edges

LONG_ENGLISH = (
    "The long road that runs beside the river from the old mill to the new bridge was closed for "
    "most of the winter because the water had risen so high that nobody could walk along it or "
    "drive over it and the people of the village had to go all the way around the hill to reach "
    "the small shop where they used to buy their bread and their milk every morning"
)
LONG_HINDI = (
    "हम लोग कल शाम को बाज़ार गए थे और वहाँ से बहुत सारी सब्ज़ियाँ और फल लेकर आए लेकिन रास्ते में इतनी तेज़ बारिश होने लगी "
    "कि हम सब पूरी तरह भीग गए और घर पहुँचते पहुँचते रात हो गई क्योंकि सड़क पर बहुत पानी भर गया था जो कई घंटों तक नहीं "
    "उतरा और हमारे पास न छाता था न कोई गाड़ी थी जिससे हम जल्दी घर पहुँच सकते या किसी को फ़ोन करके बुला सकते"
)


def words_of(voice: str) -> tuple[str, str]:
    return ("आज बारिश हुई", "हम घर पर रहे") if voice == "asha" else ("We saw the sea", "It was cold")


def spoken(speech: SpeechAccount, voice: str, text: str) -> bytes:
    answer = speech.speak(text, voice=voice, response_format="wav")
    assert answer.status_code == 200, answer.text
    return decoded(answer.content)[0]


def frames(speech: SpeechAccount, voice: str, *messages: str) -> list[bytes]:
    with speech.session(voice=voice, response_format="wav") as session:
        for text in messages:
            session.text(text)
        session.done()
        return [decoded(frame)[0] for frame in session.rest() if isinstance(frame, bytes)]


@pytest.mark.parametrize(
    ("voice", "between", "least", "most"),
    [
        ("ava", ". ", 0.2, 0.3),
        ("ava", "!\n", 0.28, 0.38),
        ("ava", ". [pause:1.5s] ", 1.49, 1.56),
        ("asha", ".\n\n", 0.4, 0.5),
    ],
)
def test_the_pause_between_two_sentences_depends_on_their_ends(
    speech: SpeechAccount, voice: str, between: str, least: float, most: float
) -> None:
    first, second = words_of(voice)

    alone = spoken(speech, voice, first + ".")
    whole = spoken(speech, voice, f"{first}{between}{second}.")
    parts = frames(speech, voice, f"{first}{between}", f"{second}.")

    at = still_after(whole, len(alone) // 2)
    assert least <= at <= most
    assert len(parts) == 2
    assert least <= still_after(b"".join(parts), len(alone) // 2) <= most
    assert len(b"".join(parts)) == pytest.approx(len(whole), abs=0.02 * SAMPLE_RATE * 2)


def still_after(pcm: bytes, place: int) -> float:
    """Seconds of the longest silence at the sample ``place``, or within 60 ms of it."""
    loud = np.flatnonzero(np.abs(samples(pcm).astype(int)) > 200)
    near = 0.06 * SAMPLE_RATE
    here = (loud[:-1] - near < place) & (place < loud[1:] + near)
    return float(np.diff(loud)[here].max()) / SAMPLE_RATE


@pytest.mark.parametrize("voice", ["ava", "asha"])
def test_nothing_is_silent_before_the_first_sentence_and_after_the_last(
    speech: SpeechAccount, voice: str
) -> None:
    first, second = words_of(voice)

    start, end = still_edges(spoken(speech, voice, f"\n\n# {first}.\n\n{second}.\n\n"))

    assert start < 0.06
    assert end < 0.1


@pytest.mark.parametrize(("voice", "text"), [("ava", LONG_ENGLISH), ("asha", LONG_HINDI)])
def test_a_long_sentence_without_commas_has_no_pause_where_it_is_cut(
    speech: SpeechAccount, voice: str, text: str
) -> None:
    first, second = clauses(text, LONGEST_UTTERANCE)

    whole, start, end = (spoken(speech, voice, part) for part in (text, first, second))

    assert len(whole) == pytest.approx(len(start) + len(end), abs=0.1 * SAMPLE_RATE * 2)
    cut = still_after(whole, len(start) // 2)
    # The silence of a stop consonant of these voices; a comma takes 74 to 162 ms.
    assert cut < 0.06, (first[-20:], second[:20])


def test_a_long_sentence_keeps_the_pauses_of_its_commas(speech: SpeechAccount) -> None:
    clause = "and then we walked a little further along the old wall of the garden"
    text = ", ".join([clause] * 6)
    first, *_ = clauses(text, LONGEST_UTTERANCE)

    start, whole = spoken(speech, "ava", first), spoken(speech, "ava", text)

    assert 0.07 < still_after(whole, len(start) // 2) < 0.17
