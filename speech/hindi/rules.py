"""Letter rules between Devanagari and the Latin letters that people type for it.

Both directions: ``romanizations`` for the index of the lexicon, ``spell`` for words that no
lexicon knows. Rules: docs/explain/speech-text.md, Romanized Hindi.
"""

from __future__ import annotations

import re
from itertools import product

_CONSONANTS = {
    "क": "k", "ख": "kh", "ग": "g", "घ": "gh", "ङ": "n", "च": "ch", "छ": "chh", "ज": "j",
    "झ": "jh", "ञ": "n", "ट": "t", "ठ": "th", "ड": "d", "ढ": "dh", "ण": "n", "त": "t",
    "थ": "th", "द": "d", "ध": "dh", "न": "n", "प": "p", "फ": "ph", "ब": "b", "भ": "bh",
    "म": "m", "य": "y", "र": "r", "ल": "l", "ळ": "l", "व": "v", "श": "sh", "ष": "sh",
    "स": "s", "ह": "h",
}  # fmt: skip
_NUKTA = {"क": "k", "ख": "kh", "ग": "g", "ज": "z", "फ": "f", "ड": "d", "ढ": "dh"}
_VOWELS = {
    "अ": "a", "आ": "aa", "इ": "i", "ई": "ee", "उ": "u", "ऊ": "oo", "ऋ": "ri", "ए": "e",
    "ऐ": "ai", "ऑ": "o", "ओ": "o", "औ": "au", "ा": "aa", "ि": "i", "ी": "ee", "ु": "u",
    "ू": "oo", "ृ": "ri", "े": "e", "ै": "ai", "ॉ": "o", "ो": "o", "ौ": "au", "ॅ": "e", "ऍ": "e",
}  # fmt: skip
_SIGNS = frozenset("ािीुूृेैॉोौॅ")
_VIRAMA, _NUKTA_SIGN = "्", "़"
_GYA = "\ue000"
_CONSONANTS[_GYA] = "gy"
_VISARGA = "\u0903"
_NASALS = frozenset("ंँ")

_SPELL_CONSONANTS = [
    ("chh", "छ"), ("cch", "च्छ"), ("ksh", "क्ष"), ("gy", "ज्ञ"), ("kh", "ख"), ("gh", "घ"),
    ("ch", "च"), ("jh", "झ"), ("th", "थ"), ("dh", "ध"), ("ph", "फ"), ("bh", "भ"), ("sh", "श"),
    ("k", "क"), ("q", "क"), ("c", "क"), ("g", "ग"), ("j", "ज"), ("z", "ज\u093c"), ("t", "त"),
    ("d", "द"), ("n", "न"), ("p", "प"), ("f", "फ\u093c"), ("b", "ब"), ("m", "म"), ("y", "य"),
    ("r", "र"), ("l", "ल"), ("v", "व"), ("w", "व"), ("s", "स"), ("h", "ह"), ("x", "क्स"),
]  # fmt: skip
_SPELL_VOWELS = [
    ("aa", "आ", "ा"), ("ee", "ई", "ी"), ("ii", "ई", "ी"), ("oo", "ऊ", "ू"), ("uu", "ऊ", "ू"),
    ("ai", "ऐ", "ै"), ("au", "औ", "ौ"), ("ou", "औ", "ौ"), ("ei", "ए", "े"), ("a", "अ", ""),
    ("i", "इ", "ि"), ("u", "उ", "ु"), ("e", "ए", "े"), ("o", "ओ", "ो"),
]  # fmt: skip
_LETTERS = re.compile(
    "|".join([pair[0] for pair in _SPELL_CONSONANTS] + [triple[0] for triple in _SPELL_VOWELS])
)
_TO_CONSONANT = dict(_SPELL_CONSONANTS)
_TO_VOWEL = {latin: (letter, sign) for latin, letter, sign in _SPELL_VOWELS}
_FINAL_LONG = {"a": "aa", "i": "ee", "u": "oo"}
_ENDINGS = [
    ("oonga", "ूँगा", "ऊँगा"), ("unga", "ूँगा", "ऊँगा"), ("oongi", "ूँगी", "ऊँगी"),
    ("ungi", "ूँगी", "ऊँगी"), ("enge", "ेंगे", "एँगे"), ("yenge", "एँगे", "एँगे"),
    ("yega", "एगा", "एगा"), ("yegi", "एगी", "एगी"), ("ega", "ेगा", "एगा"), ("egi", "ेगी", "एगी"),
    ("oge", "ोगे", "ओगे"), ("ogi", "ोगी", "ओगी"), ("yein", "एँ", "एँ"), ("ein", "ें", "एँ"),
    ("oon", "ूँ", "ऊँ"), ("un", "ूँ", "ऊँ"), ("iye", "िए", "इए"), ("kar", "कर", "कर"),
    ("ne", "ने", "ने"), ("na", "ना", "ना"), ("ta", "ता", "ता"), ("ti", "ती", "ती"),
    ("te", "ते", "ते"),
]  # fmt: skip
_MOST_VARIANTS = 12


def romanizations(word: str) -> list[str]:
    """How people type a Devanagari word, likeliest first; empty for other scripts.

    The final inherent vowel is silent, a medial one between single consonants as well
    (VC_CV); both spellings of an optional one are given.
    """
    units = _units(word.replace("ज्ञ", _GYA))
    if units is None:
        return []
    choices = [_choices(units, at) for at in range(len(units))]
    spellings = {"".join(letters): None for letters in product(*_bounded(choices))}
    return list(spellings)


def _bounded(choices: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    count = 1
    bounded = []
    for choice in choices:
        kept = choice if count * len(choice) <= _MOST_VARIANTS else choice[:1]
        count *= len(kept)
        bounded.append(kept)
    return bounded


def _units(word: str) -> list[tuple[str, str]] | None:
    """Pairs of a consonant (or nothing) and a vowel: ``"."`` inherent, empty for none, or nasal."""
    units: list[tuple[str, str]] = []
    for at, letter in enumerate(word):
        if letter in _CONSONANTS:
            units.append((_CONSONANTS[letter], "."))
        elif letter == _NUKTA_SIGN and units and word[at - 1] in _NUKTA:
            units[-1] = ("R" if word[at - 1] in "डढ" else _NUKTA[word[at - 1]], ".")
        elif letter in _NASALS or letter == _VISARGA:
            units.append(("N" if letter in _NASALS else "h", ""))
        elif letter == _VIRAMA and units:
            units[-1] = (units[-1][0], "")
        elif letter in _SIGNS and units:
            units[-1] = (units[-1][0], _VOWELS[letter])
        elif letter in _VOWELS:
            units.append(("", _VOWELS[letter]))
        else:
            return None
    return units


def _choices(units: list[tuple[str, str]], at: int) -> tuple[str, ...]:
    consonant, vowel = units[at]
    heads: tuple[str, ...] = (consonant,)
    if consonant == "R":
        heads = ("d", "r")
    elif consonant == "N":
        labial = at + 1 < len(units) and units[at + 1][0] in {"p", "b", "bh", "m", "ph"}
        heads = ("m", "n") if labial else ("n",)
    if vowel != ".":
        return tuple(head + vowel for head in heads)
    return tuple(head + tail for head in heads for tail in _inherent(units, at))


def _inherent(units: list[tuple[str, str]], at: int) -> tuple[str, ...]:
    last = at == len(units) - 1
    after_cluster = at > 0 and units[at - 1][1] == "" and units[at - 1][0] not in {"", "N"}
    if last:
        return ("", "a") if after_cluster or units[at][0] == "y" else ("",) if at else ("a",)
    if units[at + 1][0] == "h" and units[at + 1][1] in {".", ""}:
        return ("a", "e")
    medial = at > 0 and units[at - 1][1] not in {"", "."} and units[at + 1][1] not in {"", "."}
    if medial and units[at + 1][0] not in {"", "N"}:
        return ("", "a")
    if at > 1 and units[at - 1][1] == "." and units[at + 1][1] not in {"", "."}:
        return ("", "a")
    if at == 1 and units[0][1] == "." and units[2:] and units[2][1] not in {"", "."}:
        return ("", "a")
    return ("a",)


def spell(roman: str) -> str | None:
    """Devanagari for a word that no lexicon knows, letter by letter; None for other letters.

    A final vowel is long, neighbouring consonants are joined, ``n`` before a consonant is a nasal.
    """
    pieces = _LETTERS.findall(roman)
    if "".join(pieces) != roman:
        return None
    out: list[str] = []
    open_consonant = False
    for at, piece in enumerate(pieces):
        last = at == len(pieces) - 1
        if piece in _TO_VOWEL:
            long_piece = _FINAL_LONG.get(piece, piece) if last and len(pieces) > 1 else piece
            letter, sign = _TO_VOWEL[long_piece]
            out.append(sign if open_consonant else letter)
            open_consonant = False
            continue
        if piece in "nm" and not open_consonant and out and _starts_consonant(pieces, at + 1):
            out.append("ं")
            continue
        if open_consonant:
            out.append(_VIRAMA)
        out.append(_TO_CONSONANT[piece])
        open_consonant = True
    return "".join(out)


def _starts_consonant(pieces: list[str], at: int) -> bool:
    return (
        at < len(pieces)
        and pieces[at] in _TO_CONSONANT
        and pieces[at] not in {"y", "h", "r", "n", "m", "v", "w"}
    )


def with_ending(roman: str) -> list[tuple[str, str]]:
    """Latin stem and Devanagari ending, for each common ending that ``roman`` may have."""
    found: list[tuple[str, str]] = []
    for latin, after_consonant, after_vowel in _ENDINGS:
        stem = roman.removesuffix(latin)
        if stem != roman and len(stem) > 1:
            found.append((stem, after_vowel if stem[-1] in "aeiou" else after_consonant))
    return found
