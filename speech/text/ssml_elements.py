"""The elements of SSML: what their attributes mean, and what is wrong with them."""

from __future__ import annotations

import html
import re
from typing import Final

import msgspec

from speech.text.ipa import LONGEST_IPA, UnknownPhonemes, written_ipa
from speech.text.tags import TagError

SLOWEST: Final = 0.25
FASTEST: Final = 4.0
"""Bounds of the factor that all ``prosody`` elements around a text make together."""

_TIME = re.compile(r"\+?(?P<amount>[0-9]{1,9}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})(?P<unit>ms|s)")
_STRENGTHS: Final = {
    "none": 0.0, "x-weak": 0.15, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.0,
}  # fmt: skip
_RATES: Final = {
    "x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.5, "x-fast": 2.0,
}  # fmt: skip
_FACTOR = re.compile(r"(?P<sign>[+-]?)(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?P<percent>%?)")


class InvalidSsml(TagError):
    """The SSML is broken at an offset in code points. The message quotes nothing of the text, but for
    a symbol that is no IPA."""

    def __init__(self, mistake: str, at: int) -> None:
        super().__init__(f"The SSML is invalid at character {at + 1}: {mistake}")


class Element(msgspec.Struct):
    """An element that is open."""

    name: str
    attributes: dict[str, str]
    places: dict[str, int]
    """Where the values of the attributes are."""
    rate: float
    """The factor that holds within the element."""
    at: int
    is_replaced: bool = False
    said: list[str] | None = None
    """The text of a ``say-as`` or ``phoneme``, which is changed as a whole."""
    span: tuple[int, int] = (0, 0)
    """Where that text is."""


def required(element: Element, attribute: str) -> str:
    """The value of an attribute. Raises ``InvalidSsml`` when it is not there."""
    if attribute not in element.attributes:
        raise InvalidSsml(f"<{element.name}> needs the attribute '{attribute}'.", element.at)
    return element.attributes[attribute]


def check_phonemes(element: Element) -> None:
    """Raise ``InvalidSsml`` unless a ``phoneme`` has sounds that can be spoken."""
    if element.attributes.get("alphabet", "ipa") != "ipa":
        raise InvalidSsml("'alphabet' of <phoneme> must be ipa.", element.at)
    ipa = html.unescape(required(element, "ph"))
    if len(ipa) > LONGEST_IPA:
        raise InvalidSsml(
            f"'ph' of <phoneme> may have at most {LONGEST_IPA} characters.", element.at
        )
    try:
        written_ipa(ipa)
    except UnknownPhonemes as error:
        raise InvalidSsml(f"'ph' of <phoneme>: {error}", element.places["ph"]) from None


def break_seconds(element: Element) -> float:
    """The silence of a ``break``. Raises ``InvalidSsml``."""
    attributes, at = element.attributes, element.at
    if "time" in attributes:
        time = _TIME.fullmatch(attributes["time"].strip())
        if time is None:
            raise InvalidSsml("'time' of <break> must be like 500ms or 1.5s.", at)
        return float(time["amount"]) / (1000 if time["unit"] == "ms" else 1)
    strength = attributes.get("strength", "medium").strip()
    if strength not in _STRENGTHS:
        raise InvalidSsml(f"'strength' of <break> must be one of {', '.join(_STRENGTHS)}.", at)
    return _STRENGTHS[strength]


def rate_factor(rate: str, at: int) -> float:
    """The factor on the voice's pace: ``slow``, ``120%``, ``+20%``, ``1.2``."""
    if rate in _RATES:
        return _RATES[rate]
    factor = _FACTOR.fullmatch(rate)
    if factor is None or (factor["sign"] and not factor["percent"]):
        raise InvalidSsml(
            f"'rate' of <prosody> must be a percentage, a number or one of {', '.join(_RATES)}.", at
        )
    number = float(factor["number"])
    if factor["sign"]:
        return 1 + number / 100 if factor["sign"] == "+" else max(0.0, 1 - number / 100)
    return number / 100 if factor["percent"] else number
