"""Converts espeak-ng's phonemes to the symbols that Kokoro-82M was trained on, and to its tokens.

Kokoro writes a diphthong or an affricate as one symbol. The tables follow misaki, the phonemizer of
its training (Apache-2.0); the tokens are the model's own vocabulary.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from speech.text.ipa import SYLLABIC, TIE

_NUMBERS: Final = {
    **dict(zip(";:,.!?", range(1, 7), strict=True)),
    **dict(zip('—…"()“” ̃ʣʥʦʨᵝꭧA', range(9, 25), strict=True)),
    "I": 25,
    "O": 31,
    "Q": 33,
    "S": 35,
    "T": 36,
    "W": 39,
    "Y": 41,
    "ᵊ": 42,
    **dict(zip("abcdef", range(43, 49), strict=True)),
    **dict(zip("hijklmnopqrstuvwxyzɑɐɒæ", range(50, 73), strict=True)),
    "β": 75,
    "ɔ": 76,
    "ɕ": 77,
    "ç": 78,
    "ɖ": 80,
    "ð": 81,
    "ʤ": 82,
    "ə": 83,
    "ɚ": 85,
    "ɛ": 86,
    "ɜ": 87,
    "ɟ": 90,
    "ɡ": 92,
    "ɥ": 99,
    "ɨ": 101,
    "ɪ": 102,
    "ʝ": 103,
    "ɯ": 110,
    "ɰ": 111,
    "ŋ": 112,
    "ɳ": 113,
    "ɲ": 114,
    "ɴ": 115,
    "ø": 116,
    "ɸ": 118,
    "θ": 119,
    "œ": 120,
    "ɹ": 123,
    "ɾ": 125,
    "ɻ": 126,
    "ʁ": 128,
    "ɽ": 129,
    "ʂ": 130,
    "ʃ": 131,
    "ʈ": 132,
    "ʧ": 133,
    "ʊ": 135,
    "ʋ": 136,
    "ʌ": 138,
    "ɣ": 139,
    "ɤ": 140,
    "χ": 142,
    "ʎ": 143,
    "ʒ": 147,
    "ʔ": 148,
    "ˈ": 156,
    "ˌ": 157,
    "ː": 158,
    "ʰ": 162,
    "ʲ": 164,
    "↓": 169,
    "→": 171,
    "↗": 172,
    "↘": 173,
    "ᵻ": 177,
}

_ENGLISH: Final = (
    ("ʔˌn" + SYLLABIC, "tᵊn"),
    ("ʔn" + SYLLABIC, "tᵊn"),
    ("ʔn", "tᵊn"),
    ("a^ɪ", "I"),
    ("a^ʊ", "W"),
    ("d^ʒ", "ʤ"),
    ("e^ɪ", "A"),
    ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"),
    ("ə^l", "ᵊl"),
    ("ɚɹ", "əɹ"),
    ("ɚ", "əɹ"),
    ("ʲo", "jo"),
    ("ʲə", "jə"),
    ("ʔ", "t"),
    ("ʲ", ""),
    ("r", "ɹ"),
    ("x", "k"),
    ("ç", "k"),
    ("ɐ", "ə"),
    ("ɬ", "l"),
    ("\u0303", ""),
)
"""In this order, so that a longer spelling is replaced before one that it contains."""

_AMERICAN: Final = (
    ("o^ʊ", "O"),
    ("e^ə", "ɛ"),
    ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"),
    ("ɪə", "iə"),
    ("ː", ""),
    ("e", "A"),
    ("o", "ɔ"),
)
_BRITISH: Final = (("e^ə", "ɛː"), ("iə", "ɪə"), ("ə^ʊ", "Q"), ("e", "A"), ("o", "ɔ"))
_HINDI: Final = (
    ("a^ɪ", "I"),
    ("a^ʊ", "W"),
    ("d^z", "ʣ"),
    ("d^ʒ", "ʤ"),
    ("e^ɪ", "A"),
    ("o^ʊ", "O"),
    ("ə^ʊ", "Q"),
    ("t^s", "ʦ"),
    ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"),
)
_LANGUAGE_SWITCH = re.compile(r"\([a-z^-]*\)")
_SYLLABIC_CONSONANT = re.compile(rf"(\S){SYLLABIC}")


def english(ipa: str, *, british: bool = False) -> str:
    """Kokoro's spelling of espeak-ng's phonemes of an English text."""
    spelt = _replaced(_LANGUAGE_SWITCH.sub("", ipa), _ENGLISH)
    spelt = _SYLLABIC_CONSONANT.sub(r"ᵊ\1", spelt)
    return _replaced(spelt, _BRITISH if british else _AMERICAN).replace(TIE, "")


def hindi(ipa: str) -> str:
    """Kokoro's spelling of espeak-ng's phonemes of a Hindi text."""
    spelt = _replaced(_LANGUAGE_SWITCH.sub("", ipa), _HINDI)
    return spelt.replace(TIE, "").replace("-", "")


def tokens(symbols: str) -> list[int]:
    """The tokens of ``symbols``; symbols that the model does not know are left out."""
    known = (
        part
        for symbol in symbols
        for part in (symbol if symbol in _NUMBERS else unicodedata.normalize("NFD", symbol))
    )
    return [_NUMBERS[part] for part in known if part in _NUMBERS]


def _replaced(text: str, pairs: tuple[tuple[str, str], ...]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text
