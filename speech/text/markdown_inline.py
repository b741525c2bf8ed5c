"""Marks within a line: emphasis, code, links, images, footnotes, HTML tags, cells of a table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

_UNSPOKEN = re.compile(
    r"/{2,}|/?\*+/?|[-=~]>|<!?--+|--+>|={3,}|-{3,}"  # marks of comments, arrows, lines of signs
    r"|(?<![A-Z])#|!(?!=)(?=[\w(])|[~\\|^`{}\[\];\"]"
    r"|\$(?!\d)|@(?!\w)|(?<!\w)@|(?<!\d)%|(?<!\w)'|'(?!\w)"
    r"|(?<![^\W_])_+|_+(?![^\W_])|(?<=[a-zA-Z_)\]]):(?=\S)|:(?=[a-zA-Z_])"
)
_DOUBLED = re.compile(r"([=&])\1")
_JOINED = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")


def code_words(code: str) -> str:
    """Keep the names, figures and operators of ``code``; other signs become spaces.

    ``=``, ``+``, ``-``, ``&``, ``.`` between names and ``/`` are kept: a person reads them out.
    """
    code = _UNSPOKEN.sub(" ", code)
    code = _DOUBLED.sub(r"\1", code)
    return _JOINED.sub(" ", code)


_SIGNS: Final = "!#$%&*+-.<>@[]()_`|~^"
_KEPT_AT: Final = 0xE200
"""Private use: escaped signs and signs of code are moved there, out of reach of later rules."""

_KEEP = str.maketrans({sign: chr(_KEPT_AT + ord(sign)) for sign in _SIGNS})
_RESTORE = {_KEPT_AT + ord(sign): sign for sign in _SIGNS}
_ESCAPE = re.compile(r"\\([!#$%&*+\-.<>@_`|~])")
_BACKTICKS = re.compile(r"(`+)")

_WORD: Final = r"[^\W_]"
_COMMENT = re.compile(r"<!--[^<>]*-->|<!--|-->")
_LINE_BREAK = re.compile(rf"(?<={_WORD})\s*<br\s{{0,4}}/?>\s*(?=\S)", re.IGNORECASE)
_POWER = re.compile(r"<sup>(?=[-\d])", re.IGNORECASE)
_BLOCK_TAGS: Final = "blockquote|br|caption|dd|details|div|dl|dt|h[1-6]|hr|li|ol|p|pre|summary|table|tbody|td|tfoot|th|thead|tr|ul"
_SPAN_TAGS: Final = "a|abbr|b|big|center|cite|code|del|dfn|em|font|i|img|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var|wbr"
_ATTRIBUTES: Final = (
    r"(?:\s{1,9}[a-zA-Z-]{1,40}=(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>=]+))*\s{0,9}/?>"
)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK_TAGS}){_ATTRIBUTES}", re.IGNORECASE)
_SPAN_TAG = re.compile(rf"</?(?:{_SPAN_TAGS}){_ATTRIBUTES}", re.IGNORECASE)
_AUTOLINK = re.compile(r"<([a-zA-Z][a-zA-Z0-9+.-]{1,30}:[^<>\s]*|[^<>\s@]{1,64}@[^<>\s@]{1,255})>")

_TARGET: Final = (
    r"\((?:<[^<>]*>|[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)"
    r"(?:[ \t]{1,4}(?:\"[^\"]{0,300}\"|'[^']{0,300}'))?[ \t]{0,4}\)"
)
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{_TARGET}")
_LINK_END = re.compile(rf"\]{_TARGET}")
_REFERENCE = re.compile(r"(?<![\w\])])!?\[([^\[\]]+)\]\[[^\[\]]*\]")
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,64}\]")
_MARK = re.compile(r"\*+|_+|~~+")
_MASKED = re.compile(r"(?<![\w*])(?:\*{4,16}[ -]?){1,4}(?=\d{4}(?![\d*]))")
"""The digits of a card that are not shown; emphasis has three signs at most."""
_DIALLED = re.compile(
    r"(?<![\w*#])\*#?\d{1,5}(?:\*\d{1,20}){0,4}#(?![\w*])"
    r"|(?:(?<=\b[Dd]ial )|(?<=\b[Pp]ress )|(?<=\b[Ee]nter ))\*\d{2,6}(?![\w*])"
    r"|(?<=\b[Tt]hen )\*(?=[.,;:?!]|$)"
)
"""Codes and keys of a telephone, whose star marks up nothing."""
_CELL_END = re.compile(r"(?<!\|)\|(?!\|)")
_SPACED_CELL_END = re.compile(r"(?<=\s)\|(?=\s)")
_PUNCTUATION: Final = ".,;:!?…।॥"


def inline(text: str) -> str:
    """Remove the marks within a line or part of one."""
    text = _kept_code(_ESCAPE.sub(lambda escape: escape[1].translate(_KEEP), text))
    text = _without_marks(text)
    if _SPACED_CELL_END.search(text) and not text.startswith("$ "):
        text = _listed(_SPACED_CELL_END.split(text))
    return text.translate(_RESTORE)


def table_row(text: str) -> str:
    """Join the cells of a row of a table, or part of one, with commas."""
    text = _kept_code(_ESCAPE.sub(lambda escape: escape[1].translate(_KEEP), text))
    cells = [_without_marks(cell) for cell in _CELL_END.split(text)]
    return _listed(cells).translate(_RESTORE)


def _listed(cells: Sequence[str]) -> str:
    said = [words for cell in cells if (words := cell.strip())]
    return "".join(
        cell + (" " if cell[-1] in _PUNCTUATION else ", ") for cell in said[:-1]
    ) + "".join(said[-1:])


def _kept_code(text: str) -> str:
    """Protect code between backticks from the other rules; a lone backtick is dropped."""
    if "`" not in text:
        return text
    parts = _BACKTICKS.split(text)
    places: dict[int, list[int]] = defaultdict(list)
    for at in range(len(parts) - 2, 0, -2):
        places[len(parts[at])].append(at)
    said = [parts[0]]
    at = 1
    while at < len(parts):
        partners = places[len(parts[at])]
        while partners and partners[-1] <= at:
            partners.pop()
        if partners:
            end = partners.pop()
            said.append(code_words("".join(parts[at + 1 : end])).translate(_KEEP))
            at = end
        said.append(parts[at + 1])
        at += 2
    return "".join(said)


def _without_marks(text: str) -> str:
    if "<" in text or ">" in text:
        text = _without_html(text)
    if "]" in text:
        text = _FOOTNOTE.sub("", text)
        for _ in range(2):  # an image may be the text of a link
            text = _LINK.sub(r"\1", text)
        text = _REFERENCE.sub(r"\1", _LINK_END.sub("", text))
    text = _MASKED.sub("•••• ", text)
    if "*" in text:
        text = _DIALLED.sub(lambda dialled: dialled[0].translate(_KEEP), text)
    return _MARK.sub(_emphasis, text)


def _without_html(text: str) -> str:
    text = _COMMENT.sub(" ", text)
    text = _LINE_BREAK.sub(", ", text)
    text = _POWER.sub("^", text)
    text = _SPAN_TAG.sub("", _BLOCK_TAG.sub(" ", text))
    return _AUTOLINK.sub(r"\1", text)


def _emphasis(mark: re.Match[str]) -> str:
    """Remove a mark of emphasis; keep signs that are none.

    Kept: ``3*4``, ``5 * 3``, ``2**10``, ``a*b``, ``snake_case``, ``104*`` without a sign before it.
    """
    text, signs = mark.string, mark[0]
    if _follows_a_figure(mark):
        return signs
    before = text[max(0, mark.start() - 2) : mark.start()]
    after = text[mark.end() : mark.end() + 2]
    if not before or not after:
        return ""
    if signs[0] == "_":
        return signs if is_word(before[-1]) and is_word(after[0]) else ""
    return signs if signs in ("*", "**") and _is_operator(before, signs, after) else ""


def _follows_a_figure(mark: re.Match[str]) -> bool:
    """Whether it is a lone star after a figure, the first of its sentence, which ends no emphasis."""
    text = mark.string
    return (
        mark[0] == "*"
        and text[mark.start() - 1 : mark.start()].isdigit()
        and not is_word(text[mark.end() : mark.end() + 1] or " ")
        and "*" not in text[: mark.start()]
    )


def _is_operator(before: str, signs: str, after: str) -> bool:
    if before[-1].isspace() and after[0].isspace():
        return signs == "*"
    if before[-1].isspace():
        return signs == "*" and before[0].isdigit() and after[0].isdigit()
    if before[-1] == "(" and after[0] == ")":
        return signs == "*"
    if not (is_word(before[-1]) or before[-1] in ")]"):
        return False
    if signs == "**":
        return after[0].isdigit() and before[-1] != "]"
    if not (is_word(after[0]) or after[0] == "("):
        return False
    return (
        before[-1].isdigit()
        or before[-1] == ")"
        or after[0].isdigit()
        or (len(before) == 1 or not is_word(before[0]))
        or (is_word(after[0]) and (len(after) == 1 or not is_word(after[1])))
    )


def is_word(character: str) -> bool:
    """Whether it is a letter, a digit, or a sign that belongs to a letter of an Indian script."""
    return (
        character.isalnum()
        or "\u0300" <= character <= "\u036f"
        or "\u0900" <= character <= "\u0dff"
    )
