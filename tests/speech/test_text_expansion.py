"""Expansion: what an engine reads badly is written out in the voice's language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speech.text.expansion import expand
from speech.text.language import Language


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("It costs $3.50.", "It costs 3 dollars 50 cents."),
        ("$1 or $2 million", "1 dollar or 2 million dollars"),
        ("₹1,00,000 and ₹5 lakh", "100000 rupees and 5 lakh rupees"),
        ("Rs. 500/- only, 20 €", "500 rupees only, 20 euros"),
        ("£0.05, £1.01, ¥300", "5 pence, 1 pound 1 penny, 300 yen"),
        ("5 km at 60 km/h, 1 kg", "5 kilometres at 60 kilometres per hour, 1 kilogram"),
        ("-20°C and 50%", "-20 degrees Celsius and 50 percent"),
        ("Dr. Smith & Mrs. Jones", "Doctor Smith and Missus Jones"),
        ("Tea, milk etc.", "Tea, milk et cetera."),
        ("Hi 😀👍🏽 there ❤️", "Hi there "),
        ("1,234,567 people, No. 5", "1234567 people, number 5"),
    ],
)
def test_english_is_written_out(text: str, spoken: str) -> None:
    assert expand(text, Language.ENGLISH) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("यह ₹500 का है।", "यह 500 रुपये का है।"),
        ("₹2 करोड़", "2 करोड़ रुपये"),
        ("डॉ. शर्मा 5 km दूर हैं", "डॉक्टर शर्मा 5 किलोमीटर दूर हैं"),
        ("50% छूट & $1", "50 प्रतिशत छूट और 1 डॉलर"),
    ],
)
def test_hindi_is_written_out_in_devanagari(text: str, spoken: str) -> None:
    assert expand(text, Language.HINDI) == spoken


@pytest.mark.parametrize(
    "text", ["Plain words, no signs.", "In 2024 at 10:30", "v2.0.1 and 3.14", "a 5mm2 b", "AT&T"]
)
def test_other_text_is_left_alone(text: str) -> None:
    assert expand(text, Language.ENGLISH).replace(" and ", "&") == text.replace(" and ", "&")


@given(st.text(max_size=200), st.sampled_from(Language))
def test_any_text_can_be_expanded(text: str, language: Language) -> None:
    assert isinstance(expand(text, language), str)
