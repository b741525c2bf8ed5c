# ruff: noqa: RUF001  # signs that look like others are the point
"""Figures, signs and symbols are written out as they are spoken, and a hostile text in no longer time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.language import Language
from speech.text.normalise.characters import cleaned
from speech.text.normalise.locale import Region, region_of
from speech.text.normalise.sentence import normalised
from speech.wire import LONGEST_INPUT
from tests.support.fuzzing.mutations import within
from tests.support.texts.written_spoken import Pair, pairs

ENGLISH, HINDI = Language.ENGLISH, Language.HINDI
LOCALES = st.sampled_from(
    [*((ENGLISH, region) for region in (Region.US, Region.GB, Region.IN)), (HINDI, Region.IN)]
)
PARTS = ("tuned", "held-out", "fresh")
PUBLISHED = {
    (ENGLISH, "held-out"): 121,
    (HINDI, "held-out"): 121,
    (ENGLISH, "fresh"): 73,
    (HINDI, "fresh"): 73,
}
"""Pairs that docs/explain/speech-text.md says are right."""


@pytest.mark.parametrize("pair", [*pairs(ENGLISH, "tuned"), *pairs(HINDI, "tuned")], ids=str)
def test_a_written_text_is_read_as_people_read_it(pair: Pair) -> None:
    assert pair.is_right, pair.read


@pytest.mark.parametrize(("language", "part"), PUBLISHED)
def test_texts_that_no_rule_was_tuned_on_are_read_as_published(
    language: Language, part: str
) -> None:
    right = sum(pair.is_right for pair in pairs(language, part))
    assert right >= PUBLISHED[language, part]


@pytest.mark.parametrize("language", Language)
def test_there_are_enough_pairs_to_judge_by(language: Language) -> None:
    assert len(pairs(language, "tuned", "held-out", "fresh")) >= 300
    assert len(pairs(language, "held-out")) >= 100


@pytest.mark.parametrize("pair", [*pairs(ENGLISH, *PARTS), *pairs(HINDI, *PARTS)], ids=str)
def test_writing_out_a_text_twice_changes_nothing(pair: Pair) -> None:
    assert normalised(pair.read, pair.language, pair.region) == pair.read


ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORTH = {word: number for number, word in enumerate(ONES)}
WORTH |= {word: 10 * number for number, word in enumerate(TENS, start=2)}
SCALES = {
    "thousand": 10**3, "lakh": 10**5, "million": 10**6, "crore": 10**7, "billion": 10**9,
    "trillion": 10**12, "quadrillion": 10**15,
    "हज़ार": 10**3, "लाख": 10**5, "करोड़": 10**7, "अरब": 10**9, "खरब": 10**11,
}  # fmt: skip
HINDI_WORTH = {normalised(str(number), HINDI, Region.IN): number for number in range(100)}


def meant(words: str) -> int:
    """The number that words mean: a multiple of the greatest scale, and the rest."""
    return _meant([word for word in words.split() if word != "and"])


def _meant(words: list[str]) -> int:
    scales = [(SCALES[word], at) for at, word in enumerate(words) if word in SCALES]
    if scales:
        scale, at = max(scales)
        return (_meant(words[:at]) or 1) * scale + _meant(words[at + 1 :])
    total = 0
    for word in words:
        total = total * 100 if word in ("hundred", "सौ") else total + (WORTH | HINDI_WORTH)[word]
    return total


def grouped(number: int, *, indian: bool) -> str:
    if not indian:
        return f"{number:,}"
    head, last = divmod(number, 1000)
    if not head:
        return str(last)
    pairs_of_digits = re.sub(r"(?<=\d)(?=(?:\d\d)+$)", ",", str(head))
    return f"{pairs_of_digits},{last:03}"


def in_devanagari(figure: str) -> str:
    return figure.translate({ord("0") + digit: chr(0x966 + digit) for digit in range(10)})


NUMBERS = st.integers(0, 10**15) | st.integers(0, 15).map(lambda power: 10**power)


@given(number=NUMBERS, locale=LOCALES)
def test_the_words_of_a_number_mean_it_in_every_grouping(
    number: int, locale: tuple[Language, Region]
) -> None:
    for indian in (False, True):
        figure = grouped(number, indian=indian)
        assert meant(normalised(figure, *locale)) == number
        assert normalised(in_devanagari(figure), *locale) == normalised(figure, *locale)
    spaced = grouped(number, indian=False).replace(",", "\u202f")
    assert meant(normalised(spaced, *locale)) == number


@given(number=NUMBERS.filter(lambda n: not 1100 <= n < 2100 and len(str(n)) != 10), locale=LOCALES)
def test_a_number_without_separators_means_the_same(
    number: int, locale: tuple[Language, Region]
) -> None:
    """Four digits may be a year, ten a telephone number."""
    assert meant(normalised(str(number), *locale)) == number
    assert meant(normalised(f"{number}.", *locale).rstrip(".")) == number


@given(number=NUMBERS, locale=LOCALES)
def test_an_amount_of_money_means_its_number(number: int, locale: tuple[Language, Region]) -> None:
    spoken = normalised(f"₹{number}", *locale)
    words, _, currency = spoken.rpartition(" ")
    assert meant(words) == number
    assert currency in ("rupee", "rupees", "रुपया", "रुपये")


def test_hindi_has_a_word_of_its_own_for_every_number_to_99() -> None:
    assert len(HINDI_WORTH) == 100
    assert not any(" " in word for word in HINDI_WORTH)


PIECES = [
    "1", "12", "0", "007", "1,000", "1,00,000", "$", "$5", "€1.000,50", "₹2", "Rs.", "%", "5%",
    "°C", "km", "5m", "m²", "½", "1½", "²", "10²", "-", "–", "/", "*", "**", "+", "=", "<", ">",
    "≥", "x", "^", "√", "(", ")", "Dr.", "St.", "Elm", "Henry", "VIII", "I", "Mon-Fri", "Jan",
    "May", "2024", "12:30", "pm", "AM", "'", '"', "in.", "@", "a@b.com", "#1", "#tag",
    "www.x.org/a?b=1", "&amp;", "&", "v2.0.1", "CO2", "5G", "COVID-19", "e.g.", "etc.", "lakh",
    "L", "करोड़", "बजे", "१२", "में", "1st", "5वें", "to", "से", "users", ".", ",", ":", "😀", "…",
    "₂", "①", "Ⅷ", "१", "٣", "24/7", "3/4", "1990s", "K", "p", "¢", "->", "|", "_", "\\", "डॉ.",
    "नं.", "2024-05-12", "1/2/2003", "5-10",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join)
SENTENCES = st.lists(st.sampled_from(PIECES), max_size=14).map(" then ".join)
"""With a word between, so that no sign that was dropped brings its neighbours together."""


@given(text=TEXTS | st.text(max_size=60), locale=LOCALES)
def test_no_digit_is_left(text: str, locale: tuple[Language, Region]) -> None:
    assert not any(map(str.isdigit, normalised(text, *locale)))


@given(text=SENTENCES, locale=LOCALES)
def test_a_text_in_words_is_unchanged(text: str, locale: tuple[Language, Region]) -> None:
    spoken = normalised(text, *locale)
    assert normalised(spoken, *locale) == spoken


@pytest.mark.parametrize(
    "text",
    [
        "Plain words, no signs.",
        "She said: “I’m here; wait…” (and left) — really?",
        "NASA, the FBI and JPEG files in the U.S. economy",
        "We may sat in the sun.",
        "क्या आप ठीक हैं? हाँ, मैं ठीक हूँ।",
    ],
)
def test_words_are_left_alone(text: str) -> None:
    assert normalised(text, ENGLISH, Region.US) == text
    assert normalised(text, HINDI, Region.IN) == text


def test_spaces_at_the_ends_are_kept() -> None:
    assert normalised(" It is 5 ", ENGLISH, Region.US) == " It is five "


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Tom &amp; Jerry &lt; 10m users", "Tom & Jerry < 10m users"),
        ("Great 😀👍🏽! It is ❤️ 5 km", "Great! It is 5 km"),
        ("so\u00adft \u200bword", "soft word"),
        ("5 ½ ± 2", "5 ½ ± 2"),
    ],
)
def test_an_engine_that_reads_figures_itself_gets_them_as_written(text: str, clean: str) -> None:
    assert cleaned(text) == clean


@pytest.mark.parametrize(
    ("engine_voice", "region"),
    [
        ("en-us+f3", Region.US),
        ("en-us", Region.US),
        ("en", Region.GB),
        ("en+m3", Region.GB),
        ("en-gb-x-rp+f2", Region.GB),
        ("en-029", Region.GB),
        ("en_GB-alba-medium", Region.GB),
        ("en_US-joe-medium", Region.US),
        ("en-IN-NeerjaNeural", Region.IN),
        ("bf_emma", Region.GB),
        ("af_sky", Region.US),
        ("alloy", Region.US),
        ("", Region.US),
    ],
)
def test_the_region_of_an_english_voice_is_read_from_its_name(
    engine_voice: str, region: Region
) -> None:
    assert region_of(engine_voice, ENGLISH) is region
    assert region_of(engine_voice, HINDI) is Region.IN


HOSTILE = [
    "1", "1,", "1 ", "1.", "1-", "1/", "1:", "$", "€1.", "1,000,", "1 000 ", "1234-", "1234 ",
    "12:30", "a@", "a.", "a@b.", "www.", "://", "http://a/", "#a", "@a", "&", "&amp", "½", "²",
    "a²", "^", "a^", "x ", "1x1", "- ", "-1", "–", "1–", "1 - ", "*", "/ ", "a/", "_a", "Dr. ",
    "St. ", "Elm St. ", "Mon-", "Jan ", "Jan 1 ", "1 Jan ", "VIII ", "Henry I", "I", "A1", "A1-",
    "1m ", "10m a ", "5 in", "5'", "1/2 ", "1 1/2 ", "v1.", "1.1", "call ", "call 1", "(", "(1",
    "+1", "= ", "a=", "1<", "≥", "≥1", "→ ", " ", "\xa0", "😀", "1st ", "१", "₹१", "Rs.", "5 से ",
    "से", "बजे", "e.g.", "etc", "x.com ", "x.com/", "a.b.c.d.", "0", "00 ", "1%", "°", "p. ", "'",
    "1990s ", "the 20s ", "\u200d", "\n", "क", "ि", "1990 में ", "9 Elm ", " AM", "10:00-",
    "million", "5 million ", "--", "①", "Ａ", "𝟏",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_text_takes_no_longer_than_a_plain_one(pattern: str) -> None:
    text = ("Hello " + pattern * LONGEST_INPUT)[:LONGEST_INPUT] + " end."
    for locale in ((ENGLISH, Region.US), (HINDI, Region.IN)):
        with within(1):
            normalised(text, *locale)
