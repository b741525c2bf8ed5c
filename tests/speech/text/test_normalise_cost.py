"""Writing out a hostile text takes no longer than a plain one."""

# ruff: noqa: RUF001  # signs that look like others are the point

from __future__ import annotations

import pytest

from speech.text.normalise.locale import Region
from speech.text.normalise.sentence import normalised
from speech.wire import LONGEST_INPUT
from tests.speech.text.test_normalise import ENGLISH, HINDI
from tests.support.fuzzing.mutations import within

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


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_text_takes_no_longer_than_a_plain_one(pattern: str) -> None:
    text = ("Hello " + pattern * LONGEST_INPUT)[:LONGEST_INPUT] + " end."
    for locale in ((ENGLISH, Region.US), (HINDI, Region.IN)):
        with within(1):
            normalised(text, *locale)
