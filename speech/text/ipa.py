"""The symbols of the International Phonetic Alphabet that the embedded engines can be given."""

from __future__ import annotations

import unicodedata
from typing import Final

LONGEST_IPA: Final = 100
"""Code points."""

TIE: Final = "^"
"""Joins the letters of one sound, such as a diphthong; espeak-ng writes it so."""

SYLLABIC: Final = "\u0329"

LETTERS: Final = frozenset("abcdefhijklmnopqrstuvwxyzæçðøœŋɐɑɒɔɕɖəɚɛɜɟɡɣɤɥɨɪɯɰɲɳɴɸɹɻɽɾʁʂʃʈʊʋʌʎʒʔʝʣʤʥʦʧʨβθχᵊᵻ")  # fmt: skip
"""Symbols of sounds, as ``written_ipa`` leaves them."""

_SIGNS: Final = frozenset("ˈˌːʰʲ↗↘ ^")
_KNOWN: Final = LETTERS | _SIGNS
_WRITTEN: Final = (
    ("\u0361", TIE),
    ("\u035c", TIE),
    *(
        (pair, f"{pair[0]}{TIE}{pair[1]}")
        for pair in ("aɪ", "aʊ", "eɪ", "oʊ", "əʊ", "ɔɪ", "tʃ", "dʒ")
    ),
    ("g", "ɡ"),
    ("'", "ˈ"),
    (":", "ː"),
    ("ɫ", "l"),
    ("ɬ", "l"),
    ("ʱ", "ʰ"),
    ("ɝː", "ɝ"),
    ("ɝ", "ɜːɹ"),
    (".", ""),
    ("/", ""),
    ("[", ""),
    ("]", ""),
)
"""IPA as people write it, and as espeak-ng does; syllable points and brackets mean nothing."""


class UnknownPhonemes(ValueError):
    """A text is no IPA that can be spoken. The message is for the client."""


def written_ipa(ipa: str) -> str:
    """IPA of a person in one spelling, with ties. Raises ``UnknownPhonemes``."""
    spelt = unicodedata.normalize("NFC", ipa)
    for old, new in _WRITTEN:
        spelt = spelt.replace(old, new)
    spelt = " ".join(spelt.split())
    for symbol in spelt:
        if symbol not in _KNOWN and not _is_marked(symbol):
            raise UnknownPhonemes(
                f"{symbol!r} (U+{ord(symbol):04X}) is no symbol of the IPA that can be spoken."
            )
    if LETTERS.isdisjoint(unicodedata.normalize("NFD", spelt)):
        raise UnknownPhonemes("there is no sound of the IPA in it.")
    return spelt


def _is_marked(symbol: str) -> bool:
    """Whether it is a known letter with diacritics, or a diacritic itself."""
    parts = unicodedata.normalize("NFD", symbol)
    return all(part in LETTERS or unicodedata.combining(part) for part in parts)
