"""Writes IPA as the phonemes that espeak-ng takes in the place of a word.

The names of its phonemes: docs/phonemes.md of espeak-ng 1.52. A sound that its English or Hindi does not have
becomes the nearest that it has.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from speech.text.ipa import SYLLABIC, TIE, written_ipa

_BETWEEN: Final = "|"
"""Keeps two phonemes from being read as the name of a third."""

MOST_MNEMONICS: Final = 150
"""Of one word; espeak-ng has room for 200."""

_PHONEMES: Final = {
    # vowels
    "a": "a", "aː": "A:", "e": "e", "eː": "e:", "i": "i", "iː": "i:", "o": "o", "oː": "o:",
    "u": "u", "uː": "u:", "y": "u:", "æ": "a", "ø": "3:", "œ": "3:", "ɐ": "a#", "ɑ": "A:",
    "ɑː": "A:", "ɒ": "0", "ɔ": "O", "ɔː": "O:", "ə": "@", "əː": "@:", "ɚ": "3", "ɛ": "E",
    "ɛː": "E:", "ɜ": "3:", "ɜː": "3:", "ɤ": "@", "ɨ": "I", "ɪ": "I", "ɯ": "u:", "ʊ": "U",
    "ʌ": "V", "ᵊ": "@", "ᵻ": "I#",
    "a^ɪ": "aI", "a^ʊ": "aU", "e^ɪ": "eI", "o^ʊ": "oU", "ə^ʊ": "oU", "ɔ^ɪ": "OI",
    "e^ə": "e@", "ɛ^ə": "e@", "i^ə": "i@", "ɪ^ə": "i@", "ʊ^ə": "U@",
    # consonants
    "b": "b", "c": "c", "d": "d", "f": "f", "h": "h", "j": "j", "k": "k", "l": "l", "m": "m",
    "n": "n", "p": "p", "q": "q", "r": "r", "s": "s", "t": "t", "v": "v", "w": "w", "x": "x",
    "z": "z", "ç": "C", "ð": "D", "ŋ": "N", "ɕ": "S;", "ɖ": "d.", "ɟ": "J", "ɡ": "g", "ɣ": "Q",
    "ɥ": "w", "ɰ": "w", "ɲ": "n^", "ɳ": "n.", "ɴ": "N", "ɸ": "f", "ɹ": "r", "ɻ": "r",
    "ɽ": "r.", "ɾ": "*", "ʁ": "R", "ʂ": "s.", "ʃ": "S", "ʈ": "t.", "ʋ": "v#", "ʎ": "l^",
    "ʒ": "Z", "ʔ": "?", "ʝ": "J^", "β": "B", "θ": "T", "χ": "X",
    "ʣ": "dz", "ʤ": "dZ", "ʥ": "dZ;", "ʦ": "ts", "ʧ": "tS", "ʨ": "tS;",
    "d^z": "dz", "d^ʒ": "dZ", "d^ʑ": "dZ;", "t^s": "ts", "t^ʃ": "tS", "t^ɕ": "tS;", "ʲ": "j",
    f"l{SYLLABIC}": "@L", f"m{SYLLABIC}": "m-", f"n{SYLLABIC}": "n-", f"ɹ{SYLLABIC}": "3",
    # stress and words
    "ˈ": "'", "ˌ": ",", " ": " ",
}  # fmt: skip
_HINDI: Final = {
    "aː": "a:", "ɑ": "a:", "ɑː": "a:", "ɒ": "O", "ɚ": "@", "ɜ": "@:", "ɜː": "@:", "ø": "e:", "œ": "E",
    "æ": "E", "ɐ": "a", f"ɹ{SYLLABIC}": "@",
    **{f"{sound}ʰ": f"{_PHONEMES[sound]}#" for sound in "bcdkptɖɟɡʈ"},
}  # fmt: skip
"""What differs where Hindi is spoken."""


def _reader(phonemes: dict[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(phonemes, key=len, reverse=True))))


_OF_LANGUAGE: Final = {"en": _PHONEMES, "hi": {**_PHONEMES, **_HINDI}}
_READERS: Final = {language: _reader(names) for language, names in _OF_LANGUAGE.items()}


def mnemonics(ipa: str, language: str) -> str:
    """The phonemes for ``ipa``, without the brackets around them. Raises ``UnknownPhonemes``.

    Signs without a phoneme are left out: tones, and diacritics but for syllables. So is what comes after
    ``MOST_MNEMONICS``.
    """
    names = _OF_LANGUAGE[language]
    found = _READERS[language].findall(_without_diacritics(written_ipa(ipa)))
    return _BETWEEN.join(names[each] for each in found[:MOST_MNEMONICS])


def _without_diacritics(ipa: str) -> str:
    made: list[str] = []
    for symbol in ipa:
        if symbol in _PHONEMES or symbol in ("ː", "ʰ", TIE, SYLLABIC):
            made.append(symbol)
        else:
            parts = unicodedata.normalize("NFD", symbol)
            made += [part for part in parts if not unicodedata.combining(part)]
    return "".join(made)
