"""Cuts long sentences into clauses, for engines that take short texts."""

from __future__ import annotations

import re
import unicodedata

_CLAUSE_OPENING = re.compile(
    r"\s(?=(?:and|but|or|nor|yet|so|because|which|who|whom|whose|that|when|while|where|whereas|if"
    r"|although|though|since|until|unless|after|before|than"
    r"|और|एवं|तथा|लेकिन|मगर|परंतु|किंतु|बल्कि|या|क्योंकि|कि|ताकि|इसलिए|अगर|यदि|तो|जो|जब|जहाँ|जहां|जिस\S{0,4}|जिन\S{0,4}|तब)\s)",
    re.IGNORECASE,
)
_PHRASE_EDGE = re.compile(
    r"\s(?=(?:in|on|at|to|for|from|with|without|by|of|as|into|through|during|about|over|under|between)\s)"
    r"|\s(?:में|को|ने|से|पर|तक)\s",
    re.IGNORECASE,
)
_LONGEST_JOINING_WORD = 12
_CLAUSE_END = re.compile(r"[,;:!?.…।॥—–)\]](?=\s)")  # noqa: RUF001 the dash is meant


def clauses(sentence: str, longest: int) -> list[str]:
    """Cut a sentence into pieces of at most ``longest`` code points; joined they are ``sentence``.

    Cut after punctuation if the piece has at least a third of ``longest``, else before a word that
    opens a clause, else beside a preposition, else at a space, else anywhere except before a
    combining mark or a joiner. ``longest`` is at least 16, otherwise ``ValueError`` is raised.
    """
    if longest < 16:
        raise ValueError("longest must be at least 16 code points.")
    pieces: list[str] = []
    start = 0
    while len(sentence) - start > longest:
        cut = _clause_cut(sentence, start, longest)
        pieces.append(sentence[start:cut])
        start = cut
    if start < len(sentence):
        pieces.append(sentence[start:])
    return pieces


def _clause_cut(sentence: str, start: int, longest: int) -> int:
    limit = start + longest
    least = start + longest // 3
    punctuated = [match.end() for match in _CLAUSE_END.finditer(sentence, least, limit)]
    if punctuated:
        return min(punctuated[-1] + 1, limit)
    for edge in (_CLAUSE_OPENING, _PHRASE_EDGE):
        seen = limit + _LONGEST_JOINING_WORD
        ends = [match.end() for match in edge.finditer(sentence, least, seen)]
        if fitting := [end for end in ends if end <= limit]:
            return fitting[-1]
    for position in range(limit, least, -1):
        if sentence[position - 1].isspace():
            return position
    for position in range(limit, least, -1):
        if not _joins(sentence, position):
            return position
    return limit


def _joins(sentence: str, position: int) -> bool:
    """Whether the characters around ``position`` make one written syllable or symbol."""
    before, after = sentence[position - 1], sentence[position]
    joiners = "\u200c\u200d\u094d"
    return unicodedata.category(after).startswith("M") or after in joiners or before in joiners
