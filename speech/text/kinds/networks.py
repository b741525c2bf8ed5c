"""Writes out the names of machines and records that have hexadecimal figures, one by one.

``00:1A:2B:3C:4D:5E`` is a MAC address, ``2001:db8::1`` one of IPv6, and a UUID has five groups.
"""

from __future__ import annotations

import re

from speech.text.normalise import numbers
from speech.text.normalise.locale import Locale

_HEX = "[0-9A-Fa-f]"
_MAC = re.compile(
    rf"(?<![\w:.-]){_HEX}{{2}}(?:(?::{_HEX}{{2}}){{5,31}}|(?=[\d-]{{0,16}}[A-Fa-f])(?:-{_HEX}{{2}}){{5}})(?![\w-]|:\w)"
    rf"|(?<![\w:.-])(?=[\d.]{{0,13}}[a-fA-F]){_HEX}{{4}}(?:\.{_HEX}{{4}}){{2}}(?![\w-]|\.\w)"
)
_UUID = re.compile(
    rf"(?<![\w-]){_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}(?![\w-])"
)
_IPV6 = re.compile(
    rf"(?<![\w:.])(?:(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}|(?=[\da-fA-F:]{{0,38}}\d)(?:{_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{0,5}})?::(?:{_HEX}{{1,4}}(?::{_HEX}{{1,4}}){{0,5}})?)"
    r"(?:/(?P<bits>\d{1,3}))?(?![\w:]|\.\d)"
)
_HASH = re.compile(r"(?<![\w-])(?=[a-f]{0,16}\d)(?=\d{0,16}[a-f])[0-9a-f]{16,64}(?![\w-])")
"""The name of a record in a store: 4bf92f3577b34da6a3ce929d0e0e4736."""
_DIGIT = re.compile("[0-9]")
_FOUR = re.compile(r".{1,4}")
_GROUP = re.compile(rf"{_HEX}+|::?")
_SEPARATOR = re.compile(r"[:.-]")
_BEFORE_LETTER = re.compile("A (?=[A-F])")
_TIMES = re.compile(r"\d{1,2}::\d{1,2}")


def written_out(text: str, locale: Locale) -> str:
    """Write such names figure by figure, with a comma between groups for a short pause."""
    if _DIGIT.search(text):
        text = _HASH.sub(
            lambda match: ", ".join(
                _one_by_one(group, locale) for group in _FOUR.findall(match[0])
            ),
            text,
        )
    if text.count(":") > 1:
        text = _MAC.sub(lambda match: _grouped(match, locale), text)
        return _IPV6.sub(lambda match: _internet(match, locale), text)
    if text.count("-") > 3:
        text = _UUID.sub(lambda match: _grouped(match, locale), text)
    if text.count("-") > 4 or text.count(".") > 1:
        return _MAC.sub(lambda match: _grouped(match, locale), text)
    return text


def _grouped(match: re.Match[str], locale: Locale) -> str:
    return ", ".join(_one_by_one(group, locale) for group in _SEPARATOR.split(match[0]))


def _internet(match: re.Match[str], locale: Locale) -> str:
    address, _, bits = match[0].partition("/")
    if _TIMES.fullmatch(address):
        return match[0]
    colon = "कोलन" if locale.is_hindi else "colon"
    said = " ".join(
        f"{colon} {colon}"
        if group == "::"
        else colon
        if group == ":"
        else _one_by_one(group, locale)
        for group in _GROUP.findall(address)
    )
    slash = "स्लैश" if locale.is_hindi else "slash"
    return f"{said} {slash} {numbers.cardinal(int(bits), locale)}" if bits else said


def _one_by_one(group: str, locale: Locale) -> str:
    said = " ".join(numbers.digit(one, locale) if one.isdecimal() else one.upper() for one in group)
    # Engines read an A before a word as the article, and A-C is a range of letters.
    return _BEFORE_LETTER.sub("A, ", said).replace("A ", "A-")
