"""Detects the Hindi words of a Latin text and transliterates them to Devanagari.

Hindi that is mixed with English keeps its own function words: when the words around a place are
Hindi, an ambiguous function word (``par``, ``to``, ``do``) is Hindi too, or as its own rule
decides: ``the`` is थे at the end of a Hindi clause and an article elsewhere, ``ki`` is कि after a
verb and की after a noun. Function words weigh most as evidence; the weights were tuned on
tests/support/texts/hindi_development.tsv and English texts. Any other word is Hindi when its Hindi
score, raised or lowered by its neighbours, beats its frequency in English. English words, names and
all uncertain words are not changed: the engine's Hindi voices read Latin words by English rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from speech.text.hindi.lexicon import (
    OVERRIDE_SCORE,
    Group,
    build_index,
    english_zipf,
    guess,
    match,
    overrides,
    spelled,
)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """One word in its clause, given by the candidates of its words, Devanagari or Latin."""

    clause: Sequence[str]
    at: int
    speaker: bool
    """Whether a verb of the clause is in the first person: हूँ, जाऊँगी."""
    agent: bool
    """Whether the clause has a subject with ने, and so a past participle."""

    def beside(self, step: int) -> str:
        """The candidate ``step`` words away; empty beyond the clause."""
        at = self.at + step
        return self.clause[at] if 0 <= at < len(self.clause) else ""


_FIRST_PERSON = re.compile(r"[ूऊु][ँं](?:ग[ाी])?$")
_PRESENT = frozenset({"है", "हैं"})
_AGENTS = frozenset({"ने", "मैंने", "तूने", "तुमने", "आपने", "हमने", "उसने", "इसने", "किसने", "जिसने",
    "उन्होंने", "इन्होंने", "सबने"})  # fmt: skip
_MAIN_NOUNS = frozenset({
    "road", "gate", "market", "door", "hall", "course", "point", "reason", "problem", "branch",
    "building", "menu", "switch", "entrance", "line", "character", "street", "city", "idea", "part",
    "page", "station", "topic", "thing", "power",
})  # fmt: skip
"""Nouns that often follow English ``main``, in Hindi too."""
_PUTTING = re.compile(r"(?:द[िेीो]|दूँ|दूं|ल[िेीो]|रह|कर|न[ाेी]$|सक|चुक|ते$|ता$|ती$)")
"""A verb after the stem of ``daalna``, to put; elsewhere it is a dish."""
_OF_APPS = frozenset({
    "crash", "update", "download", "install", "uninstall", "reinstall", "open", "hang", "store", "version", "login", "load", "launch",
    "icon", "size", "link", "developer", "delete", "restart", "lock", "data", "cache", "ka", "का", "की", "के",
})  # fmt: skip
_APPS_NAMED = frozenset({
    "mobile", "phone", "banking", "bank", "payment", "android", "web", "new", "नया", "नई", "ये", "यह", "इस", "उस", "कौनसा", "the", "bhim",
})  # fmt: skip
"""Words beside ``app`` in its English meaning."""
_OF_LOGS = frozenset(
    {"file", "files", "in", "out", "entry", "level", "message", "book", "line", "lines", "table"}
)
_LOGS_NAMED = frozenset({"error", "server", "crash", "debug", "call", "audit", "change", "access"})
_SLEEPING = re.compile(r"(?:जा|रह|गय|गए|गई|चुक|पा|ले|ली|लि|कर|के|उठ|हु|न$|नहीं)")
_USING = re.compile(r"(?:कर|कि[यए]|की|हो|हु)")
_BEFORE_SUBJECT = frozenset({
    "और", "लेकिन", "कि", "की", "तो", "जब", "तब", "अगर", "क्या", "पर", "क्योंकि", "जो", "कल", "आज",
    "अब", "अभी", "फिर",
})  # fmt: skip
_SOON = 4
"""Words within which the verb of a short clause comes."""
_BEFORE_ARTICLE = frozenset({"इन", "on", "of", "at", "for", "from", "by", "with"})
_FINITE = re.compile(
    r"(?:है|हैं|था|थी|थे|गया|गई|गए|लगा|लगता|पता|चाहता|चाहती|चाहते|सोचा|सुना|देखा|कहा|बोला|बोली|"
    r"बोले|बताया|पूछा|समझा|इतना|इतनी|इतने|ऐसा|ऐसे|दिया|लिया|चाहिए|उम्मीद|कहना|बोलना|कहते|कहता|"
    r"कहती|हो|कहो|बोलो|देखो|सुनो|सोचो|समझो|मानो|पूछो|करो|.*ओ|.*[िइ]ए|.*[ूऊ][ँं](?:ग[ाी])?|.*[ेए]ंगे|.*[ेए]ग[ाी]|.*[ेए]ं)$"
)
"""A verb, or a word such as इतना, after which ``ki`` begins a clause."""
_NOT_FINITE = frozenset({"में", "हमें", "तुम्हें", "उन्हें", "लिए", "इनमें", "उनमें"})
_TELLING = frozenset({"बता", "बोल", "कह", "समझा", "लिख"})
"""Stems of verbs of telling, which दो or दे follows: ``bata do ki``."""


def neighbourhoods(clause: Sequence[str]) -> list[Neighbourhood]:
    """One place for each word of a clause."""
    speaker = any(_FIRST_PERSON.search(word) for word in clause)
    agent = not _AGENTS.isdisjoint(clause)
    return [Neighbourhood(clause, at, speaker, agent) for at in range(len(clause))]


def _latin(word: str) -> bool:
    return word.isascii() and word != ""


def _main(place: Neighbourhood) -> str | None:
    after = place.beside(1)
    if place.speaker:
        return "मैं"
    if not _latin(after):
        return "में" if _inside(place) else "मैं"
    english = after in _MAIN_NOUNS or not _PRESENT.isdisjoint(place.clause)
    return None if english else "मैं"


def _mein(place: Neighbourhood) -> str | None:
    before = place.beside(-1)
    return "मैं" if before == "" or (place.speaker and before in _BEFORE_SUBJECT) else "में"


def _inside(place: Neighbourhood) -> bool:
    """Whether ``main`` is typed for में: after a noun, and a verb that मैं cannot have is near."""
    before = place.beside(-1)
    if before == "" or _latin(before) or before in _BEFORE_SUBJECT:
        return False
    near = place.clause[place.at + 1 : place.at + 1 + _SOON]
    return not _PRESENT.isdisjoint(near) and "और" not in near


def _the(place: Neighbourhood) -> str | None:
    return None if _latin(place.beside(1)) or place.beside(-1) in _BEFORE_ARTICLE else "थे"


def _so(place: Neighbourhood) -> str | None:
    return "सो" if _SLEEPING.match(place.beside(1)) else None


def _use(place: Neighbourhood) -> str | None:
    after = place.beside(1)
    return None if after == "" or _USING.match(after) else "उसे"


def _are(place: Neighbourhood) -> str | None:
    return "अरे" if place.at == 0 else None


def _hi(place: Neighbourhood) -> str | None:
    return None if place.at == 0 else "ही"


def _he(place: Neighbourhood) -> str | None:
    return "है" if place.at and place.beside(1) in {"", "क्या", "न", "ना", "कि", "तो"} else None


def _ki(place: Neighbourhood) -> str | None:
    before = place.beside(-1)
    if before == "कहाँ" and place.agent:
        return "कि"
    if before in {"दो", "दे", "देना"} and place.beside(-2) in _TELLING:
        return "कि"
    return "कि" if before not in _NOT_FINITE and _FINITE.match(before) else "की"


def _kaha(place: Neighbourhood) -> str | None:
    return "कहा" if place.agent or place.beside(1) in {"कि", "की", "था"} else "कहाँ"


def _app(place: Neighbourhood) -> str | None:
    """An application beside a word about one; elsewhere ``app`` is typed for आप."""
    of_one = place.beside(1) in _OF_APPS or place.beside(-1) in _APPS_NAMED
    return None if of_one else "आप"


def _daal(place: Neighbourhood) -> str | None:
    return "डाल" if _PUTTING.match(place.beside(1)) else "दाल"


def _pad(place: Neighbourhood) -> str | None:
    return "पड़" if _PUTTING.match(place.beside(1)) or place.beside(1)[:1] == "ग" else "पद"


def _log(place: Neighbourhood) -> str | None:
    return None if place.beside(1) in _OF_LOGS or place.beside(-1) in _LOGS_NAMED else "लोग"


RULES: dict[str, Callable[[Neighbourhood], str | None]] = {
    "main": _main, "mein": _mein, "me": _mein, "mei": _mein, "the": _the, "so": _so, "use": _use, "are": _are, "hi": _hi, "he": _he,
    "ki": _ki, "kaha": _kaha, "app": _app, "daal": _daal, "dal": _daal, "pad": _pad, "log": _log,
}  # fmt: skip
"""Rule by Latin word: its Devanagari, or None when it is English there."""


RARE = 3.6
"""Zipf frequency below which an English word does not occur in a Hindi text by chance."""

_NO_WORD = 4.1
"""Zipf frequency that pieces of English names and abbreviations reach: ``ka``, ``ko``."""
_COMMON = 5.8
"""Zipf frequency of the commonest English words: few of them are loans in Hindi."""
_SPREAD = 3.0
"""The largest weight of one word in the evidence for its neighbours."""
_WINDOW = 6
"""Words on each side that count as evidence for a place."""
_HINDI_FUNCTION_WORD = 1.5
_PERHAPS_FUNCTION_WORD = 0.4
_HINDI_WORD = 0.25
"""The factor on the lead of Hindi over English."""
_HINDI_FORM = 0.4
"""The weight of a form of a Hindi word that is not English."""
_ENGLISH_WORD = -0.15
_COMMON_ENGLISH_WORD = -0.6
_ENGLISH_FUNCTION_WORD = -1.0
_THE = -0.5
_ARTICLE = -1.5
"""The weight of ``the`` where थे cannot stand."""
_ARTICLES = frozenset(
    (before, "the")
    for before in ("in", "on", "of", "at", "for", "from", "by", "with", "to", "do", "use", "open",
                   "close", "into", "is")
)  # fmt: skip
_ENGLISH_FUNCTION_WORDS = frozenset({
    "of", "and", "a", "an", "that", "this", "with", "for", "you", "she", "it", "we", "they", "was",
    "were", "his", "her", "my", "our", "your", "their", "from", "at", "be", "been", "has", "have",
    "had", "will", "would", "can", "could", "should", "i", "there", "what", "when", "where", "how",
    "why", "who", "which", "if", "as", "than", "then", "about", "into", "does", "did", "its", "not",
    "but",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """The meanings of a lower-case Latin word, and its frequency in both languages (Zipf)."""

    hindi: str | None
    guess: str | None
    """The word's form if its text is surely Hindi; for words that the lexicon does not have."""
    hindi_score: float
    english_score: float
    group: Group | None = None
    """Why the word is in the table of exceptions, or None."""

    @property
    def lead(self) -> float:
        return max(-_SPREAD, min(_SPREAD, self.hindi_score - self.english_score))


@lru_cache(maxsize=20_000)
def reading(word: str) -> Reading:
    """The reading of lower-case Latin ``word``."""
    english = english_zipf(word)
    if english >= RARE and _ENGLISH_SPELLING.match(word):
        return Reading(None, None, 1.0, english)
    found = match(word)
    if found is None:
        guessed = guess(word) if english < RARE else None
        return Reading(None, guessed.word if guessed else None, min(english, 1.0), english)
    group = overrides()[word][1] if word in overrides() else None
    return Reading(found.word, None, min(found.score, OVERRIDE_SCORE), english, group)


def evidence_for_hindi(typed: Sequence[str], readings: Sequence[Reading]) -> list[float]:
    """The evidence for each word of a text that its place is Hindi: above 0 it is."""
    lower = ["", *(word.lower() for word in typed)]
    weights = [
        _ARTICLE if pair in _ARTICLES else _weight(word, pair[0] == "", read)
        for pair, word, read in zip(pairwise(lower), typed, readings, strict=True)
    ]
    sums = [0.0, *accumulate(weights)]
    last = len(weights)
    return [sums[min(last, at + _WINDOW + 1)] - sums[max(0, at - _WINDOW)] for at in range(last)]


def _weight(typed: str, first: bool, read: Reading) -> float:
    word = typed.lower()
    if word in _ENGLISH_FUNCTION_WORDS:
        return _ENGLISH_FUNCTION_WORD
    if word == "the":
        return _THE
    if read.group and read.english_score >= RARE:
        return _PERHAPS_FUNCTION_WORD if read.english_score < _NO_WORD else 0.0
    if read.group is Group.FUNCTION:
        return _HINDI_FUNCTION_WORD
    if read.lead > 0:
        return _HINDI_WORD * read.lead if first or typed.islower() else 0.0
    if read.guess and read.english_score == 0:
        return _HINDI_FORM if typed.islower() else 0.0
    return _COMMON_ENGLISH_WORD if read.english_score > _COMMON else _ENGLISH_WORD


_ENGLISH_SPELLING = re.compile(r"c(?!h)|.*(?:ll|ss|ff|ck|tch|tion|ght)$")
"""A common English word (``cab``, ``mall``): who types Hindi writes k, and no letter twice at the end."""
_NO_HINDI = re.compile(r"[bdgjkmpt](?=[bcdfgjkmpqtxz])|.*(?<!c)c(?!c?h)|[^aeiouy]+$")
"""What shows that a word is not Hindi: it begins with consonants that no Hindi word begins with, has a ``c``
that stands for no Hindi sound (``gpay``, ``crocin``), or has no vowel (``bhk``)."""
_RUN = re.compile(r"\S+")
_LINK = re.compile(r"://|@|www\.")
_WORD = re.compile(r"(?<![A-Za-z0-9])(?<![A-Za-z]['’])[A-Za-z]{1,40}(?![A-Za-z0-9'’])")  # noqa: RUF001
_POSTPOSITIONS = frozenset({"me", "mein", "mei", "se", "ka", "ke", "ki", "ko", "tak", "pe", "par"})
_DEVANAGARI_BEFORE = re.compile(r"(?P<word>[\u0900-\u097f]{1,30}) \Z")
"""A word before the first Latin one of a clause: a figure in words."""
_CLAUSE_END = re.compile(r"[.,;:!?।\n]")
_NEIGHBOURS = 2.0
"""How far a word's neighbours move its Hindi score, in Zipf units. Only exceptions and words that
are rare in English move towards Hindi; a common English word is a loan and stays Latin."""
_UNKNOWN = 2.2
"""Zipf frequency below which a word is not English: misspellings reach 2."""
_SURELY_HINDI = 1.0
"""Mean lead of Hindi over English in a text above which unknown words count as Hindi too."""
_HINDI_AROUND = 1.0
"""Evidence around a word above which it is read as a form of a Hindi word."""


def transliterate(text: str) -> str:
    """Transliterate the romanized Hindi words of ``text`` to Devanagari (NFC), and nothing else.

    Pass at least a whole sentence, because a word's neighbours decide.
    """
    words = list(_words(text))
    if not words:
        return text
    readings = [reading(word[0].lower()) for word in words]
    evidence = evidence_for_hindi([word[0] for word in words], readings)
    decided = _by_context(text, words, readings, evidence)
    leads = [each.lead for each in readings]
    mean = sum(leads) / len(leads)
    pieces: list[str] = []
    start = 0
    for at, (word, read) in enumerate(zip(words, readings, strict=True)):
        near = leads[max(0, at - 1) : at] + leads[at + 1 : at + 2]
        lean = (mean + sum(near) / len(near)) / 2 if near else mean
        chosen = decided.get(at) or _chosen(word[0], read, lean, evidence[at])
        # A sign alone ("nn" as an anusvara) cannot be read.
        spoken = chosen if any(map(str.isalpha, chosen)) else word[0]
        pieces += [text[start : word.start()], spoken]
        start = word.end()
    return "".join([*pieces, text[start:]])


def prepare() -> None:
    """Load both lexicons now (about a second), so that no request waits for them."""
    build_index()
    english_zipf("ready")


def _words(text: str) -> Iterator[re.Match[str]]:
    for run in _RUN.finditer(text):
        if not _LINK.search(run[0]):
            yield from _WORD.finditer(text, *run.span())


def _by_context(
    text: str, words: list[re.Match[str]], readings: list[Reading], evidence: list[float]
) -> dict[int, str]:
    """The exceptions among Hindi words, by their place: Devanagari or the word itself."""
    decided: dict[int, str] = {}
    for first, end in _clauses(text, words):
        written = _DEVANAGARI_BEFORE.search(
            text, max(0, words[first].start() - 40), words[first].start()
        )
        clause = [written["word"]] if written else []
        offset = first - len(clause)
        clause += [_candidate(words[at][0], readings[at]) for at in range(first, end)]
        for place in neighbourhoods(clause)[first - offset :]:
            at = offset + place.at
            typed, read = words[at][0], readings[at]
            if read.group is None or typed.isupper():
                continue
            if evidence[at] <= 0 and not _follows_devanagari(text, words[at]):
                continue
            rule = RULES.get(typed.lower())
            decided[at] = (rule(place) if rule else read.hindi) or typed
    return decided


def _follows_devanagari(text: str, word: re.Match[str]) -> bool:
    """Whether it is a postposition right after a figure in words: ``सौ me``."""
    start = word.start()
    is_after = start > 1 and text[start - 1] == " " and "\u0900" <= text[start - 2] <= "\u097f"
    return is_after and word[0].lower() in _POSTPOSITIONS


def _clauses(text: str, words: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Ranges of words with no punctuation between them."""
    first = 0
    for at in range(1, len(words)):
        if _CLAUSE_END.search(text, words[at - 1].end(), words[at].start()):
            yield first, at
            first = at
    yield first, len(words)


def _candidate(typed: str, read: Reading) -> str:
    if read.hindi is None:
        return read.guess or typed.lower()
    return read.hindi if read.group or read.lead > 0 else typed.lower()


def _chosen(typed: str, read: Reading, lean: float, evidence: float) -> str:
    if typed.isupper():
        return typed
    if read.hindi is not None:
        most = _NEIGHBOURS if read.group or read.english_score < RARE else 0.0
        if read.hindi_score + max(-_NEIGHBOURS, min(most, lean)) > read.english_score:
            return read.hindi
        return typed
    if not typed.islower():
        return typed
    surely = lean >= _SURELY_HINDI and read.english_score < _UNKNOWN and len(typed) > 2
    if read.guess and (surely or evidence >= _HINDI_AROUND):
        return read.guess
    return (surely and not _NO_HINDI.match(typed) and spelled(typed)) or typed
