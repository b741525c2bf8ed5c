# ruff: noqa: RUF001  # dashes are meant
"""Finds the dots of a line that end an abbreviation or stand within a name, and no sentence."""

from __future__ import annotations

import re

from speech.text.normalise.units import UNITS
from speech.text.shortened import SHIELD, Place, spellings

_LONGEST = 12
"""Letters of the longest abbreviation that is looked for before a dot, and one more."""


def _words(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_ALWAYS = _words(
    "Ft Lt Col Capt Sgt Maj Rs Smt Shri Adv vs Opp Nr nr dep arr Dep Arr viz dt Dt Exp bt Civ Crim Evid Pen Veh Fam Inj Tab Cap Gen Hon Rev cf"
)
_BEFORE_FIGURES = (*spellings(Place.NUMBER), "Div", "div")
_BEFORE_MORE = (
    *_words("Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"),
    *_words("Mot Compl Decl Eng Aus Pak Ind Afg Div Disp disp Sig sig perf Perf prod Prod des arr exc Exc det sec Conf cond gd maj Co Fwd"),
    *_words("in sq cu reg Reg att med Med conf bus rev Rev trans pub repr rt lt exp comp ed eds ff"),
    *_words("Co Ave Blvd Rd St Dr Ln Pkwy Ct Est etc al"),
    *spellings(Place.ORDINAL, Place.PLAIN, Place.WORD, Place.INSIDE, Place.TITLE, Place.OF),
    *(unit[:-1] for unit in UNITS if unit.endswith(".") and unit.isascii()),
)  # fmt: skip
"""Abbreviations that may also end a sentence: the next word must continue it."""
_BEFORE_NAMES = _words(
    "def Resp approx incl excl esp attn asst asstt intl natl addl exec feat Comp Pol Dep Pt Syr Syp Approx Incl Excl Asst Asstt Intl Natl Addl Attn Dept Rt"
)
"""Abbreviations that end no sentence before a name either."""
_STATES = _words(
    "Ala Ariz Ark Calif Colo Conn Fla Ill Kan Ky Mass Mich Minn Mont Neb Nev Okla Ore Tenn Tex Wash Wis Wyo"
)
_HINDI = _words(
    "डॉ श्री श्रीमती प्रो पं रु रू सं कु नं पृ कं इंजी मो क्र दि जि तह स्व न्या अनु दू प्र अधि न्यून न्यू जन फर फ़र अप्रै अग सित सितं अक्टू अक्तू नव नवं दिस दिसं सोम मंगल बुध गुरु शुक्र शनि "
    "का ग्रा छो मा चि उदा घं खा"
)
_IN_HINDI = "[\u0900-\u097f]"
_HINDI_INITIALS = "|".join(rf"(?<=\.{_IN_HINDI * length}\.)" for length in range(1, 5))
"""The last dot of ``मि.ली.`` or ``आर.के.``."""
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ANYTHING = re.compile("")
_NUMBER = re.compile(
    r"\s?(?:[\d#]|(?:[IVX]{2,4}|[VXB-H])\b|[AI](?=[,.;:)]))|[,:;]|[A-Z]{1,4}[-/]?\d"
)
_MORE = re.compile(
    rf"[,:;)]|[-–—/][A-Za-z\d]|\s{{1,2}}(?:[a-z0-9$£€₹&@#]|\([a-z\d]|{_MONTH}|Rs\b|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun))"
)
_CAPITAL = re.compile(r"\s?[A-Z]")
_OF = re.compile(r" (?:of|for) [A-Z]")


def _followers() -> dict[str, tuple[re.Pattern[str], ...]]:
    """What must follow the dot of each abbreviation for it to end no sentence."""
    found: dict[str, tuple[re.Pattern[str], ...]] = {}
    for words, follower in (
        (_ALWAYS, _ANYTHING),
        (_BEFORE_FIGURES, _NUMBER),
        ((*_BEFORE_MORE, *_STATES), _MORE),
        ((*_BEFORE_NAMES, *spellings(Place.TITLE)), _CAPITAL),
        (spellings(Place.OF), _OF),
        (
            ("H", "Inv", "inv", "Sr", "Sl", "Lr", "Ser", "Ref", "Ph", "Reg", "Chq", "Acct"),
            re.compile(r"\s?No\b"),
        ),
    ):
        for word in words:
            found[word] = (*found.get(word, ()), follower)
    return found


_FOLLOWERS = _followers()
_JOINING = frozenset(",;:")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LAST_LETTERS = "".join(sorted({word[-1] for word in _FOLLOWERS}))
_DOT = re.compile(rf"\.(?<=[{_LAST_LETTERS}]\.)")
_DOT_IN_HINDI = re.compile(
    rf"\.(?<={_IN_HINDI}\.)(?:"
    + "|".join(
        (
            *(rf"(?<=(?<!{_IN_HINDI}){word}\.)" for word in _HINDI),
            *(
                rf"(?<=\d\s{unit}\.)"
                for unit in ("मि", "मी", "ली", "ग्रा", "छो", "ब", "च", "घं", "से")
            ),
            rf"(?=\s?{_IN_HINDI})(?:{_HINDI_INITIALS}|(?<={_IN_HINDI}\.)(?={_IN_HINDI}))",
        )
    )
    + ")"
)


def shielded(text: str) -> str:
    """``text`` with ``SHIELD`` for each dot that ends an abbreviation and no sentence."""
    if "." not in text:
        return text
    text = _DOT.sub(_shield, text)
    return text if text.isascii() else _DOT_IN_HINDI.sub(SHIELD, text)


def _shield(dot: re.Match[str]) -> str:
    text, end = dot.string, dot.start()
    start, least = end, max(0, end - _LONGEST)
    while start > least and text[start - 1] in _LETTERS:
        start -= 1
    followers = _FOLLOWERS.get(text[start:end])
    before = text[start - 1 : start]
    # A letter after a dot is the last of initials, which the splitter knows as a whole.
    if text[end + 1 : end + 2] in _JOINING:
        return SHIELD
    if text[start:end] == "in":
        # Inches; elsewhere the word may end a sentence.
        followers = followers if text[max(0, start - 2) : start - 1].isdigit() else None
    if (
        followers is None
        or before.isalnum()
        or before == "_"
        or (before == "." and end - start == 1)
    ):
        return "."
    return SHIELD if any(each.match(text, end + 1) for each in followers) else "."
