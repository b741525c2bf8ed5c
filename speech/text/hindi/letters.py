"""Rules between the letters of Devanagari and the Latin letters that people type for them.

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
    ("ungi", "ूँगी", "ऊँगी"), ("yenge", "एँगे", "एँगे"), ("enge", "ेंगे", "एँगे"),
    ("yega", "एगा", "एगा"), ("yegi", "एगी", "एगी"), ("ega", "ेगा", "एगा"), ("egi", "ेगी", "एगी"),
    ("oge", "ोगे", "ओगे"), ("ogi", "ोगी", "ओगी"), ("yein", "एँ", "एँ"), ("ein", "ें", "एँ"),
    ("oon", "ूँ", "ऊँ"), ("un", "ूँ", "ऊँ"), ("aiye", "ाइए", "आइए"), ("iye", "िए", "इए"),
    ("aya", "ाया", "आया"), ("ayi", "ाई", "आई"), ("aye", "ाए", "आए"), ("ai", "ाई", "आई"),
    ("ao", "ाओ", "आओ"), ("aana", "ाना", "आना"), ("ana", "ाना", "आना"), ("ane", "ाने", "आने"),
    ("ani", "ानी", "आनी"), ("ata", "ाता", "आता"), ("ati", "ाती", "आती"), ("ate", "ाते", "आते"),
    ("kar", "कर", "कर"), ("ke", "के", "के"), ("ne", "ने", "ने"), ("na", "ना", "ना"), ("ni", "नी", "नी"),
    ("ta", "ता", "ता"), ("ti", "ती", "ती"), ("te", "ते", "ते"),
]  # fmt: skip
_SHORTEST_STEM = 3
_VERB_ONLY = frozenset({"oonga", "unga", "oongi", "ungi", "enge", "yenge", "yega", "yegi", "oge"})
"""Endings that only verbs have, so that the stem may have two letters."""
_CLUSTERS = frozenset(
    {"st", "sth", "sk", "sp", "sht", "tr", "sv", "sw", "tv", "tw", "kt", "gv", "ndr"}
)
_MOST_VARIANTS = 12
_LESS_USUAL = 0.05
_SHORTEST_NASAL = 2
_UNTYPED_NASAL = 0.6
"""Cost in Zipf units of a final nasal that is not typed: ``dono``, ``bachcho``."""
_TYPED_SILENT = 0.8
"""Cost in Zipf units of a silent vowel that is typed before an ending: ``chalana`` is चलाना, not
चलना."""
_TYPED_MEDIAL = 0.3
"""The same cost elsewhere, where the vowel shows the stem: ``nikalenge``."""
_Letters = tuple[str, float]


def romanizations(word: str) -> list[tuple[str, float]]:
    """The Latin spellings of a Devanagari word, each with its cost (Zipf units, 0 for the usual
    one); empty for other scripts.

    The final inherent vowel is silent, and so is a medial one between single consonants (VC_CV);
    an optional vowel gives both spellings.
    """
    units = _units(word.replace("ज्ञ", _GYA))
    if units is None:
        return []
    choices = [_choices(units, at) for at in range(len(units))]
    spellings: dict[str, float] = {}
    for letters in product(*_bounded(choices)):
        spelling = "".join(letter for letter, _ in letters)
        cost = sum(cost for _, cost in letters)
        spellings[spelling] = min(cost, spellings.get(spelling, cost))
    return list(spellings.items())


def _bounded(choices: list[tuple[_Letters, ...]]) -> list[tuple[_Letters, ...]]:
    count = 1
    bounded = []
    for choice in choices:
        kept = choice if count * len(choice) <= _MOST_VARIANTS else choice[:1]
        count *= len(kept)
        bounded.append(kept)
    return bounded


def _units(word: str) -> list[tuple[str, str]] | None:
    """Pairs of a consonant (or "") and a vowel: ``"."`` inherent, empty for none, or nasal."""
    units: list[tuple[str, str]] = []
    for at, letter in enumerate(word):
        if letter in _CONSONANTS:
            units.append((_CONSONANTS[letter], "."))
        elif letter == _NUKTA_SIGN and units and word[at - 1] in _NUKTA:
            units[-1] = ({"ड": "R", "ढ": "RH"}.get(word[at - 1]) or _NUKTA[word[at - 1]], ".")
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


def _choices(units: list[tuple[str, str]], at: int) -> tuple[_Letters, ...]:
    consonant, vowel = units[at]
    heads: tuple[_Letters, ...] = ((consonant, 0.0),)
    if consonant == "R":
        heads = (("d", 0.0), ("r", _LESS_USUAL))
    elif consonant == "RH":
        heads = (("dh", 0.0), ("d", _LESS_USUAL))
    elif consonant == "N":
        labial = at + 1 < len(units) and units[at + 1][0] in {"p", "b", "bh", "m", "ph"}
        heads = (("m", 0.0), ("n", _LESS_USUAL)) if labial else (("n", 0.0),)
        if at and at == len(units) - 1 and len(units) > _SHORTEST_NASAL:
            heads += (("", _UNTYPED_NASAL),)
    tails = ((vowel, 0.0),) if vowel != "." else _inherent(units, at)
    return tuple((head + tail, cost + more) for head, cost in heads for tail, more in tails)


def _inherent(units: list[tuple[str, str]], at: int) -> tuple[_Letters, ...]:
    if at == len(units) - 1:
        after_cluster = at > 0 and units[at - 1][1] == "" and units[at - 1][0] not in {"", "N"}
        if after_cluster or units[at][0] == "y":
            return ("", 0.0), ("a", _LESS_USUAL)
        return (("", 0.0),) if at else (("a", 0.0),)
    if units[at + 1][0] == "h" and units[at + 1][1] in {".", ""}:
        return ("a", 0.0), ("e", _LESS_USUAL)
    if _silent(units, at):
        suffix = units[at + 1][0] in {"n", "t"} and at + 2 == len(units)
        return ("", 0.0), ("a", _TYPED_SILENT if suffix else _TYPED_MEDIAL)
    if at == 0 and units[0][0] == "h" and units[1][0] == "m":
        return ("a", 0.0), ("u", _LESS_USUAL)
    return (("a", 0.0),)


def _silent(units: list[tuple[str, str]], at: int) -> bool:
    """Whether the inherent vowel at ``at`` may be silent: VC_CV, read from the word's end."""
    if at == 0 or (units[at - 1][1] == "" and units[at - 1][0] != "N"):
        return False
    following, after = units[at + 1]
    if after == ".":
        return at + 3 == len(units) and units[-1][1] == "."
    return after != "" and following not in {"", "N"}


def spell(roman: str, *, bound: bool = False) -> str | None:
    """Spell a word that no lexicon knows in Devanagari, letter by letter; None for other letters.

    A final vowel is long; ``n`` before a consonant is a nasal; consonants are joined if Hindi has
    such a cluster; between others the inherent vowel is silent and needs no virama. A ``bound``
    stem has an ending, so its last consonants are no final cluster.
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
        if not open_consonant and out and _nasal(pieces, at):
            out.append("ं")
            continue
        if open_consonant and _joined(pieces, at, bound):
            out.append(_VIRAMA)
        out.append(_TO_CONSONANT[piece])
        open_consonant = True
    return "".join(out)


def _nasal(pieces: list[str], at: int) -> bool:
    if pieces[at] not in {"n", "m"} or at + 1 == len(pieces) or pieces[at + 1] in _TO_VOWEL:
        return False
    if pieces[at] == "m":
        return pieces[at + 1] in {"p", "ph", "b", "bh"}
    return pieces[at + 1] not in {"y", "h", "r", "n", "m", "v", "w", "l"}


def _joined(pieces: list[str], at: int, bound: bool) -> bool:
    """Whether the consonant at ``at`` forms a cluster with the one before."""
    before, here = pieces[at - 1], pieces[at]
    first = at == 1
    final = not bound and all(piece not in _TO_VOWEL for piece in pieces[at:])
    return first or final or before == here or here == "y" or (before + here) in _CLUSTERS


def with_ending(roman: str, *, shortest: int = _SHORTEST_STEM) -> list[tuple[str, str]]:
    """Pairs of a Latin stem and a Devanagari ending for each possible ending of ``roman``, the
    longest first."""
    found: list[tuple[str, str]] = []
    for latin, after_consonant, after_vowel in _ENDINGS:
        stem = roman.removesuffix(latin)
        if stem != roman and len(stem) >= shortest - (latin in _VERB_ONLY):
            found.append((stem, after_vowel if stem[-1] in "aeiou" else after_consonant))
    return found
