"""What an ambiguous word means, by the words beside it in its clause.

``the`` is थे at the end of a Hindi clause and an article elsewhere, ``ki`` is कि after a verb and की
after a noun, ``daal`` is डाल before a verb and a dish elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from speech.text.hindi.choices import CHOICES, Choice


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
_BEFORE_ME = frozenset(
    {
        "call",
        "text",
        "tell",
        "help",
        "let",
        "give",
        "send",
        "ping",
        "love",
        "miss",
        "trust",
        "excuse",
        "for",
    }
)
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
_NOT_FINITE = frozenset(
    {
        "में",
        "हमें",
        "तुम्हें",
        "उन्हें",
        "लिए",
        "इनमें",
        "उनमें",
        "गेहूं",
        "गेहूँ",
        "जूं",
        "दोनों",
        "बातें",
        "चीज़ें",
        "आँखें",
        "किताबें",
    }
)
_COMING = frozenset({"आता", "आती", "आया", "लगता", "मालूम"})
_OPINION = frozenset(
    {"लगता", "पता", "चाहता", "चाहती", "चाहते", "कहा", "बताया", "बोला", "सोचा", "है", "मालूम"}
)
"""What is before नहीं in front of ``ki``, which then begins a clause: ``lagta nahi ki``."""
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


def _me(place: Neighbourhood) -> str | None:
    """``call me`` at the end of an English phrase; elsewhere the postposition or the pronoun."""
    english = place.beside(-1) in _BEFORE_ME and (place.beside(1) == "" or _latin(place.beside(1)))
    return None if english else _mein(place)


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
    if before in _COMING and place.beside(-2) == "नहीं":
        return "कि"
    if before == "नहीं":
        before = place.beside(-2)
        return "कि" if before in _OPINION else "की"
    return "कि" if before not in _NOT_FINITE and _FINITE.match(before) else "की"


def _kaha(place: Neighbourhood) -> str | None:
    return "कहा" if place.agent or place.beside(1) in {"कि", "की", "था"} else "कहाँ"


def _app(place: Neighbourhood) -> str | None:
    """An application beside a word about one; elsewhere ``app`` is typed for आप."""
    of_one = place.beside(1) in _OF_APPS or place.beside(-1) in _APPS_NAMED
    return None if of_one else "आप"


def _chosen(choice: Choice, place: Neighbourhood) -> str | None:
    for case in choice.cases:
        if case.beside.fullmatch(place.beside(case.step)):
            return case.word
    return choice.otherwise


def _log(place: Neighbourhood) -> str | None:
    return None if place.beside(1) in _OF_LOGS or place.beside(-1) in _LOGS_NAMED else "लोग"


RULES: dict[str, Callable[[Neighbourhood], str | None]] = {
    "main": _main, "mein": _mein, "me": _me, "mei": _mein, "the": _the, "so": _so, "use": _use, "are": _are, "hi": _hi, "he": _he,
    "ki": _ki, "kaha": _kaha, "app": _app, "log": _log,
    **{word: partial(_chosen, rule) for word, rule in CHOICES.items()},
}  # fmt: skip
"""Rule by Latin word: its Devanagari, or None when it is English there."""
