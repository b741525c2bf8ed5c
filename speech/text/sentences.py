"""Splits text that arrives in pieces into sentences.

``sentencex`` knows abbreviations, decimals, initials, URLs and quotes of many scripts. In addition,
a newline ends a sentence, more abbreviations are protected, and a sentence is returned only when it
is surely complete. A decision depends on the text up to one complete further word, never on later
text, so the result does not depend on how the text was cut into pieces.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left

import msgspec
import sentencex

from speech.text.shortened import SHIELD
from speech.text.tags import has_words

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


_WINDOW = 300
"""Characters examined before a boundary; bounded so that a hostile text takes linear time."""

_MOST_FRUITLESS = 48
"""After so many words in a row that might end a sentence and do not, ``_NARROW`` is the window."""

_NARROW = 80

_PLAIN_WORD = re.compile(
    r"\.(?:(?<=\b(?:no|me|ok|OK)\.)|(?<=\b(?:ill|may|art|fed)\.)|(?<=\bmiss\.))"
    r"(?=\s+[\"“‘(]?(?:[A-Z][a-z'’]|[AI]\s))"  # noqa: RUF001 quotes of all kinds
)
"""A dot that ends a sentence, after a word that sentencex takes for an abbreviation."""
_CODE_NAME = re.compile(
    r"(?<=\w)\.(?=[A-Za-z_]\w{0,40}[.(:]\w|[A-Z][a-z]{1,20}[A-Z]\w|[A-Z]\w{0,40}(?:Exception|Error)\b)"
)
"""A dot within a name of a program."""
_FACTORIAL = re.compile(r"!(?:(?<=\d!)|(?<=\b[a-z]!))(?=\s?[=+*/×÷^−])")  # noqa: RUF001
_QUERY = re.compile(r"\?(?<=\s\?)(?=[A-Z])")
"""What a doctor suspects: ``?LRTI``."""
_UNEQUAL = re.compile(r"!(?===? ?[\w\"'(-])")
_LEADING_DOTS = re.compile(r"\.(?:(?<=[\s(]\.)|(?<=[\s(]\.\.))(?=\.?[/\w])")
_MARKS = re.compile(r"[.…!?।॥]{2,}+")
_DOTS = frozenset(".…")
_SIGNS = re.compile(r"[*`]|_(?<![^\W_]_)_*|_+(?![^\W_])|~~")
"""Markdown that hides the end of a sentence or an abbreviation. Each alternative begins with a
sign, so that the search skips everything else."""
_LIST_NUMBER = re.compile(r"\s*\d{1,3}\.(?=\s)")
_DEVANAGARI = re.compile(r"[\u0900-\u097F]")
_WORD_END = re.compile(r"\S(?=\s)")
_WORD_CHARACTER = re.compile(r"[^\W_]")
_OPENING_QUOTE = re.compile(r"\s[\"'“‘«]\Z")  # noqa: RUF001 quotes of all kinds
_CLOSING = re.compile(r"[)\]}”’»]+\s*")  # noqa: RUF001 quotes of all kinds
_CLOSING_SIGNS = re.compile(r"(?:[)\]}”’»*_~`]|\[\^[^\[\]\s]{1,64}\])+\s*")  # noqa: RUF001
_IN_BRACKETS = re.compile(r"\s*\([^()]*[.!?…।][\"'”’]?\)\s+(?=\S)")  # noqa: RUF001
_NEWLINE = re.compile(r"[\n\r\u2028\u2029]")
_MAY_END = re.compile(r"[^\w\s,]")


class SentenceSplitter(msgspec.Struct):
    """Returns sentences as soon as they are surely complete. No character is lost or changed."""

    _line: str = ""
    _seen: int = 0
    _words: tuple[int, int] = (0, 0)
    _has_words: bool = False
    _at_line_start: bool = True
    _fruitless: int = 0

    def _start_over(self) -> None:
        self._line = ""
        self._seen = 0
        self._words = (0, 0)
        self._has_words = False
        self._at_line_start = True
        self._fruitless = 0

    def feed(self, text: str) -> list[str]:
        """Return the sentences that ``text`` completed: a further word or a newline follows them.

        Spaces after a sentence belong to it. A piece without a letter or digit belongs to the
        sentence before it, or to the one after it if that was returned already.
        """
        sentences: list[str] = []
        start = 0
        for newline in _NEWLINE.finditer(text):
            sentences += self._extend(text[start : newline.end()])
            sentences += self._end_line()
            start = newline.end()
        return sentences + self._extend(text[start:])

    def flush(self) -> list[str]:
        """Return the rest. The last item may be a piece without words."""
        sentences = self._take(_boundaries(self._line, self._at_line_start), 0, len(self._line))
        if self._line:
            sentences.append(self._line)
        self._start_over()
        return sentences

    def _extend(self, text: str) -> list[str]:
        self._line += text
        self._has_words = self._has_words or has_words(text)
        sentences: list[str] = []
        while end := _WORD_END.search(self._line, self._seen):
            self._seen = end.end()
            sentences += self._word_completed(end.end())
        self._seen = max(self._seen, len(self._line) - 1)
        return sentences

    def _word_completed(self, end: int) -> list[str]:
        before, last = self._words
        self._words = (last, end)
        if not has_words(self._line[last:end]) or not _MAY_END.search(self._line, before, end):
            return []
        self._fruitless += 1
        start = max(0, end - (_WINDOW if self._fruitless <= _MOST_FRUITLESS else _NARROW))
        whole = start == 0 and self._at_line_start
        return self._take(_boundaries(self._line[start : end + 1], whole), start, end)

    def _end_line(self) -> list[str]:
        if not self._has_words:
            return []
        sentences = self._take(_boundaries(self._line, self._at_line_start), 0, len(self._line))
        sentences.append(self._line)
        self._cut(len(self._line))
        self._at_line_start = True
        return sentences

    def _take(self, boundaries: list[int], offset: int, read: int) -> list[str]:
        """Return sentences that further words follow in the first ``read`` code points of the line."""
        last = _last_word_character(self._line[:read]) if boundaries else 0
        sentences: list[str] = []
        start = 0
        word = _WORD_CHARACTER.search(self._line)
        for end in (offset + boundary for boundary in boundaries):
            if word and word.start() < end <= last:
                sentences.append(self._line[start:end])
                start = end
                word = _WORD_CHARACTER.search(self._line, end)
        if start:
            self._cut(start)
        return sentences

    def _cut(self, length: int) -> None:
        self._line = self._line[length:]
        self._has_words = has_words(self._line)
        self._seen = max(0, self._seen - length)
        before, last = self._words
        self._words = (max(0, before - length), max(0, last - length))
        self._at_line_start = False
        self._fruitless = 0


def _last_word_character(text: str) -> int:
    return next((at for at in range(len(text) - 1, -1, -1) if text[at].isalnum()), -1)


def _boundaries(text: str, at_line_start: bool) -> list[int]:
    """The ends of the sentences of one line, except the end of the line."""
    from speech.text.dots import shielded  # noqa: PLC0415  # see ``preparation.load``

    plain, places = _without_signs(text)
    safe = _UNEQUAL.sub(SHIELD, _FACTORIAL.sub(SHIELD, shielded(plain)))
    safe = _QUERY.sub(SHIELD, safe)
    safe = _CODE_NAME.sub(SHIELD, safe)
    safe = _LEADING_DOTS.sub(lambda dots: SHIELD * len(dots[0]), safe)
    safe = _PLAIN_WORD.sub("!", safe)
    safe = _MARKS.sub(_one_mark, safe)
    if at_line_start and (number := _LIST_NUMBER.match(safe)):
        safe = safe[: number.end() - 1] + SHIELD + safe[number.end() :]
    language = "hi" if _DEVANAGARI.search(text) else "en"
    ends: list[int] = []
    start = end = 0
    for segment in sentencex.segment(language, safe):
        start, end = end, end + len(segment)
        while bracketed := _IN_BRACKETS.match(plain, start, end):
            start = bracketed.end()
            ends.append(places.raw(start))
        ends.append(_raw_end(text, segment, places.raw(end)))
    return ends[:-1]


def _one_mark(marks: re.Match[str]) -> str:
    """``?!`` and the like as one mark of the same length; dots alone stay as they are.

    sentencex ends no sentence at several marks before ``I``, a figure or a small letter.
    """
    length = len(marks[0])
    return marks[0] if _DOTS.issuperset(marks[0]) else SHIELD * (length - 1) + "!"


class _Places:
    """Maps lengths of a text without Markdown to lengths of the text as written."""

    __slots__ = ("_plain", "_raw")

    def __init__(self, plain: list[int], raw: list[int]) -> None:
        self._plain = plain
        """The start of each piece without signs in the plain text, the first at 0."""
        self._raw = raw
        """The start of the same piece in the text as written."""

    def raw(self, length: int) -> int:
        """The length in the text as written of the first ``length`` characters without signs."""
        if not length:
            return 0
        piece = bisect_left(self._plain, length) - 1
        return self._raw[piece] + length - self._plain[piece]


def _without_signs(text: str) -> tuple[str, _Places]:
    """``text`` without Markdown, and the places of its characters in ``text``."""
    parts: list[str] = []
    plain, raw = [0], [0]
    start = length = 0
    for sign in _SIGNS.finditer(text):
        at = sign.start()
        if at > start:
            parts.append(text[start:at])
            length += at - start
        start = sign.end()
        if plain[-1] == length:
            raw[-1] = start
        else:
            plain.append(length)
            raw.append(start)
    if not parts and not start:
        return text, _Places(plain, raw)
    parts.append(text[start:])
    return "".join(parts), _Places(plain, raw)


def _raw_end(text: str, segment: str, end: int) -> int:
    closes = _CLOSING if segment[-1:].isspace() else _CLOSING_SIGNS
    if closing := closes.match(text, end):
        return closing.end()
    return end - 1 if _OPENING_QUOTE.search(segment) else end
