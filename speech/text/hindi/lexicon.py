"""Finds the Hindi word that a typed Latin word most likely means.

A noisy channel: the words of wordfreq's Hindi list (data CC-BY-SA 4.0, see NOTICE) with the same
phonetic key are ranked by frequency less the distance of the typed word from their romanization.
The index is built at the first use (about a second, 40 MB). wordfreq is imported by the first call:
it brings along packages whose import takes as long as that of all the rest of svc, and a gateway
that speaks no Hindi needs none of them.
"""

from __future__ import annotations

import csv
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache
from importlib.resources import files

from speech.text.hindi.letters import romanizations, spell, with_ending


def english_zipf(word: str) -> float:
    """The Zipf frequency of a lower-case English word, 0 (unknown) to 8."""
    import wordfreq  # noqa: PLC0415  # see above

    return wordfreq.zipf_frequency(word, "en")


def hindi_words() -> Mapping[str, float]:
    """Each Hindi word in Devanagari with the part of all words that it is."""
    import wordfreq  # noqa: PLC0415  # see above

    return wordfreq.get_frequency_dict("hi")


OVERRIDE_SCORE = 5.5
"""Zipf score of a word in the table of exceptions: as frequent as the commonest English words."""

_WEIGHT = 0.7
"""The cost of one unit of distance in Zipf units."""
_FARTHEST = 1.6
"""The greatest distance of a spelling; a word farther away only looks similar."""
_SILENT_H = 0.5
"""Cost in Zipf units of a final h that was not typed: tara is a star rather than a manner."""
_SHORT = 2
_FORM_SCORE = 5.0
"""Zipf score of a form of a listed verb."""
_VOWEL_ENDINGS = {"a": "ा", "i": "ी", "e": "े", "o": "ो", "u": "ूँ"}
_DOUBLE = re.compile(r"([bdgjklmnpstv])\1|cch|kkh")
_DOUBLED = re.compile(r"([क-ह])्\1|क्ख|च्छ|ट्ठ|त्थ|द्ध|ड्ढ|ब्भ")
_UNDOUBLED = 2.0
"""Cost in Zipf units of a double consonant that the word has not: ``patta`` is no पता."""
_NO_VOWEL = re.compile(r"[b-df-hj-np-tv-z]{1,3}$")
"""An abbreviation (``pcr``); the short forms of messages are in the table of exceptions."""
_ABUSE = frozenset(
    {"चूत", "चुत", "चूतिया", "चुतिया", "चूतिये", "लंड", "लौड़ा", "लौड़े", "लौडा", "लौडे", "गांड", "रंडी"}
)
"""Words of abuse. A harmless word that is typed alike, such as ``chhoot``, is never read as one."""
_LONGEST_CHAT = 8
_PLURALS = (
    ("iyon", "i", "ी", "ियों"), ("iyo", "i", "ी", "ियों"), ("iyan", "i", "ी", "ियाँ"),
    ("iyaan", "i", "ी", "ियाँ"), ("iya", "i", "ी", "ियाँ"), ("on", "a", "ा", "ों"), ("o", "a", "ा", "ों"),
    ("on", "", "", "ों"), ("o", "", "", "ों"), ("ein", "", "", "ें"),
)  # fmt: skip
"""Endings of plurals as they are typed, the typed and the written end of the noun, and the plural's."""
_OF_PLACES = (
    ("nagar", "नगर"), ("puram", "पुरम"), ("pura", "पुरा"), ("pur", "पुर"), ("garh", "गढ़"), ("abad", "ाबाद"), ("ganj", "गंज"),
    ("gaon", "गाँव"), ("wadi", "वाड़ी"), ("palli", "पल्ली"), ("halli", "हल्ली"), ("ganga", "गंगा"), ("kheda", "खेड़ा"),
)  # fmt: skip
"""The ends of the names of towns."""
_OF_PERSONS = (
    ("prakash", "प्रकाश"), ("prasad", "प्रसाद"), ("chand", "चंद"), ("jeet", "जीत"), ("jit", "जीत"), ("deep", "दीप"), ("preet", "प्रीत"),
    ("nath", "नाथ"), ("pal", "पाल"), ("lal", "लाल"), ("das", "दास"), ("dev", "देव"), ("ram", "राम"), ("kumar", "कुमार"), ("veer", "वीर"),
)  # fmt: skip
"""The ends of the names of persons."""
_FINAL_H = re.compile(r"[aeiou]h$")
_GAP = re.compile(r"(?<=[b-df-hj-np-tv-z])(?=[b-df-hj-np-tv-z])(?<![kgcjtdpbs](?=h))")
_DIGRAPHS = [
    ("cchh", "C"), ("chh", "C"), ("cch", "C"), ("ch", "C"), ("ksh", "kS"), ("x", "kS"), ("sh", "S"),
    ("kh", "K"), ("gh", "G"), ("jh", "J"), ("th", "T"), ("dh", "D"), ("ph", "F"), ("f", "F"),
    ("bh", "B"), ("w", "v"), ("z", "j"), ("q", "k"), ("c", "k"),
]  # fmt: skip
_PLAIN_RH = re.compile(r"(?<=[\u0905-\u0939\u093e-\u094c])ढ(?![\u093c\u094d])")
"""A letter that is written without its dot but never said so after a vowel: बढिया."""
_OW = re.compile(r"ow(?![aeiouy])")
_FOLDS = [
    (r"aa+", "A"), (r"ee+|ii+", "I"), (r"oo+|uu+", "U"),
    (r"(?<=[aeiouAIU])y[iI]", "I"), (r"(?<=[aeiouAIU])y(?=e)", ""), (r"ia", "iya"),
    (r"ai|ei|ay(?![aeiouAIU])", "E"), (r"au|ou", "O"), (r"([a-zA-Z])\1+", r"\1"),
    (r"(?<=[aeiouAIUEO])h$", ""),
]  # fmt: skip
_FOLD_PATTERNS = [(re.compile(pattern), to) for pattern, to in _FOLDS]
_KEY = str.maketrans({"A": "a", "I": "i", "U": "u", "E": "e", "O": "o"})
_CHEAP = {
    frozenset("aA"): 0.4, frozenset("iI"): 0.25, frozenset("uU"): 0.25, frozenset("eE"): 0.5,
    frozenset("oO"): 0.5, frozenset("ei"): 0.7, frozenset("iE"): 0.7, frozenset("ou"): 0.7,
    frozenset("aE"): 0.8, frozenset("ao"): 0.8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Match:
    """A Devanagari word and its score: its Zipf frequency less the cost of the distance."""

    word: str
    score: float


class Group(Enum):
    """Why a word is in the table of exceptions."""

    FUNCTION = "function"
    """A pronoun, postposition, particle or auxiliary: a sign of a Hindi text."""
    HOMOGRAPH = "homograph"
    """A word that is also English, or that means two Hindi words."""
    SPELLING = "spelling"
    """A usual spelling that follows no rule."""
    CHAT = "chat"
    """A short form used in text messages."""
    NAME = "name"
    """A name of a place or a person, which English texts spell alike (names.tsv)."""


@cache
def overrides() -> dict[str, tuple[str, Group]]:
    """Read the exceptions and their groups (overrides.tsv, spellings.tsv, names.tsv)."""
    rows = [
        *_rows("overrides.tsv"),
        *_rows("spellings.tsv"),
        *([*row, Group.NAME.value] for row in _rows("names.tsv")),
    ]
    return {
        roman: (unicodedata.normalize("NFC", word), Group(group)) for roman, word, group in rows
    }


@cache
def capital_names() -> dict[str, str]:
    """Names that are other words without their capital: ``Das``, ``Puri`` (capital_names.tsv)."""
    return {name: unicodedata.normalize("NFC", word) for name, word in _rows("capital_names.tsv")}


@cache
def english_words() -> frozenset[str]:
    """English words and abbreviations that look like Hindi words and stay as they are (english.txt)."""
    return frozenset((files("speech.text.hindi") / "english.txt").read_text("utf-8").split())


def _rows(name: str) -> Iterator[list[str]]:
    text = (files("speech.text.hindi") / name).read_text("utf-8")
    return csv.reader(text.splitlines(), delimiter="\t")


@lru_cache(maxsize=20_000)
def match(roman: str) -> Match | None:
    """The best word for lower-case Latin ``roman``, or None when none is near enough."""
    if known := overrides().get(roman):
        return Match(known[0], OVERRIDE_SCORE)
    if _NO_VOWEL.match(roman):
        return None
    if verb := _of_verb(roman):
        return verb
    found = [near for typed in _typed(roman) if (near := _nearest(roman, typed))]
    return max(found, key=_score, default=None)


@cache
def verb_stems() -> dict[str, str]:
    """Stems of verbs that are typed alike with other words: ``dal``, ``phas`` (verbs.tsv)."""
    return {stem: unicodedata.normalize("NFC", word) for stem, word in _rows("verbs.tsv")}


def _of_verb(roman: str) -> Match | None:
    """A form of a verb in the table of stems: ``dalni``, ``pahuchenge``."""
    for stem, ending in (*with_ending(roman, shortest=_SHORT), *_with_vowel(roman)):
        if word := verb_stems().get(stem):
            return Match(unicodedata.normalize("NFC", word + ending), _FORM_SCORE)
    return None


def _with_vowel(roman: str) -> Iterator[tuple[str, str]]:
    if sign := _VOWEL_ENDINGS.get(roman[-1:]):
        yield roman[:-1], sign


@lru_cache(maxsize=20_000)
def guess(roman: str) -> Match | None:
    """A match that holds only in a Hindi text: a known stem with an ending (``ghabrao``), or a word
    without its vowels (``pta``)."""
    return None if _NO_VOWEL.match(roman) else inflected(roman) or _opened(roman)


def _opened(roman: str) -> Match | None:
    """The word for ``roman`` with a vowel that is not typed: ``pta``, the stem of ``samjhao``."""
    near = [near for typed in _without_vowels(roman) if (near := _nearest(roman, typed))]
    return max(near, key=_score, default=None)


def _score(match: Match) -> float:
    return match.score


def _typed(roman: str) -> list[str]:
    """The possible folded spellings of ``roman``: a final ``ai`` is one vowel or two."""
    spellings = [fold(roman)]
    if len(roman) > _SHORT and roman.endswith("ai"):
        spellings += [fold(roman[:-2]) + ending for ending in ("AI", "Ay")]
    if len(roman) > _SHORT and roman.endswith("ay"):
        spellings.append(fold(roman[:-2]) + "Ay")
    if "aiy" in roman[1:]:
        spellings.append(fold(roman.replace("aiy", "aaiy")))
    if len(roman) > _SHORT and roman.endswith("aun"):
        spellings.append(fold(roman[:-3]) + "AUn")
    return spellings


def _nearest(roman: str, typed: str) -> Match | None:
    best: Match | None = None
    aspirated = _FINAL_H.search(roman) is not None
    doubled = _DOUBLE.search(roman) is not None
    for spelling, word, zipf in build_index().get(typed.translate(_KEY), ()):
        distance = _distance(typed, spelling)
        score = zipf - _WEIGHT * distance
        if doubled and not _DOUBLED.search(word):
            score -= _UNDOUBLED
        if aspirated:
            score += 2 * _SILENT_H if word.endswith("ह") else -_SILENT_H
        if distance <= _FARTHEST and (best is None or score > best.score):
            best = Match(word, score)
    return best


def _without_vowels(roman: str) -> Iterator[str]:
    """``roman`` with the vowels that people leave out in messages: ``pta`` means ``pata``."""
    if len(roman) > _LONGEST_CHAT:
        return
    gaps = [gap.start() for gap in _GAP.finditer(roman)]
    for gap in gaps:
        yield fold(roman[:gap] + "a" + roman[gap:])
    if len(gaps) > 1:
        yield fold(_GAP.sub("a", roman))


@lru_cache(maxsize=20_000)
def inflected(roman: str) -> Match | None:
    """A known stem with the ending of a verb: ``kharidunga``, ``ghabrao``."""
    found = [
        Match(unicodedata.normalize("NFC", stem.word + ending), stem.score)
        for latin, ending in with_ending(roman)
        if (stem := match(latin) or _opened(latin)) is not None
        and (stem.word.endswith("ह") or _FINAL_H.search(latin) is None)
    ]
    return max(found, key=_score, default=None) or _plural(roman) or _of_trade(roman)


def _of_trade(roman: str) -> Match | None:
    """Who sells or does something: ``sabziwala``."""
    for latin, ending in (
        ("wala", "वाला"),
        ("wali", "वाली"),
        ("wale", "वाले"),
        ("walon", "वालों"),
        ("walo", "वालों"),
    ):
        stem = roman.removesuffix(latin)
        if stem != roman and len(stem) > _SHORT and (noun := match(stem)):
            return Match(noun.word + ending, noun.score)
    return None


def _plural(roman: str) -> Match | None:
    """The plural of a known noun: ``ghutno``, ``chabiyan``."""
    for latin, singular, last, ending in _PLURALS:
        stem = roman.removesuffix(latin)
        if stem == roman or len(stem) <= _SHORT or stem[-1] in "aeou":
            continue
        noun = match(stem + singular)
        if noun is not None and noun.word.endswith(last):
            verb = match(stem + "na") if latin == "o" and singular == "" else None
            if verb is not None and verb.word == noun.word + "ना":
                return Match(noun.word + "ो", noun.score)
            word = noun.word.removesuffix(last) + ending
            return Match(unicodedata.normalize("NFC", word), noun.score)
    return None


@lru_cache(maxsize=20_000)
def spelled(roman: str) -> str | None:
    """Spell ``roman`` by letter rules: a known stem with a verb's or pronoun's ending, else all
    letters. None when a letter has no sound.
    """
    if found := inflected(roman):
        return found.word
    if place := place_name(roman):
        return place
    for stem, ending in with_ending(roman):
        if stem[-1] not in "aeiou" and (word := spell(stem, bound=True)) is not None:
            return unicodedata.normalize("NFC", word + ending)
    for latin, ending in (("iyon", "ियों"), ("iyo", "ियों"), ("iyan", "ियाँ"), ("iyaan", "ियाँ")):
        stem = roman.removesuffix(latin)
        if stem != roman and (word := spell(stem, bound=True)) is not None:
            return unicodedata.normalize("NFC", word + ending)
    word = spell(roman)
    return None if word is None else unicodedata.normalize("NFC", word)


@lru_cache(maxsize=20_000)
def place_name(roman: str) -> str | None:
    """The name of a town by its end: ``Rampur``, ``Rajnagar``."""
    for latin, ending in _OF_PLACES:
        stem = roman.removesuffix(latin)
        if stem != roman and len(stem) > _SHORT:
            known = match(stem)
            word = known.word if known else spell(stem, bound=True)
            return None if word is None else unicodedata.normalize("NFC", word + ending)
    return None


@lru_cache(maxsize=20_000)
def proper_name(roman: str) -> str | None:
    """The name of a town, or of a person that is made of two known words: ``Dharampal``."""
    if place := place_name(roman):
        return place
    for latin, ending in _OF_PERSONS:
        stem = roman.removesuffix(latin)
        if stem != roman and len(stem) > _SHORT and (known := match(stem)):
            return unicodedata.normalize("NFC", known.word + ending)
    return None


def fold(roman: str) -> str:
    """Write one letter per sound: merge digraphs, long vowels (capital) and spelling habits."""
    roman = _OW.sub("au", roman)
    for digraph, sound in _DIGRAPHS:
        roman = roman.replace(digraph, sound)
    for pattern, to in _FOLD_PATTERNS:
        roman = pattern.sub(to, roman)
    return roman


@cache
def build_index() -> dict[str, list[tuple[str, str, float]]]:
    """Map phonetic keys to (folded spelling, Devanagari word, Zipf frequency); built once."""
    index: dict[str, list[tuple[str, str, float]]] = {}
    for listed, frequency in hindi_words().items():
        word = _PLAIN_RH.sub("ढ\u093c", unicodedata.normalize("NFC", listed))
        if word in _ABUSE:
            continue
        zipf = math.log10(frequency) + 9
        for spelling, cost in romanizations(word):
            folded = fold(spelling)
            rank = zipf - cost - (_SILENT_H if word.endswith("ह") else 0.0)
            index.setdefault(folded.translate(_KEY), []).append((folded, word, rank))
    return index


def _distance(typed: str, spelling: str) -> float:
    """The distance of two spellings with the same key, which differ only in lengths of vowels.

    A long vowel that is typed short costs little, and nothing at the end of a word; a short vowel
    that is typed long costs more.
    """
    distance = 0.0
    last = len(typed) - 1
    for at, (left, right) in enumerate(zip(typed, spelling, strict=True)):
        if left == right:
            continue
        if left.islower():
            distance += 0.0 if at == last else _CHEAP.get(frozenset((left, right)), 1.0)
        else:
            distance += _FARTHEST + 1 if left == "A" else 1.5
    return distance
