"""Removes the marks of Markdown from text before an engine gets it.

Input is often written by a language model and arrives in pieces. ``read`` gets one piece, a
sentence or part of one, and the ``MarkdownState`` where it begins; it needs no text after the
piece, so a mark whose partner stands in another sentence (``**One. Two.**``) is recognised by its
neighbours alone. Rules: docs/explain/speech-text.md, Markdown. Every step takes time linear in the
text.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec
from msgspec.structs import replace

from speech.text.markdown_inline import code_words, inline, table_row


class Line(Enum):
    """The kind of a line, as far as its later parts or the pause after it depend on it."""

    TEXT = "text"
    ITEM = "item"
    HEADING = "heading"
    ROW = "row"
    CODE = "code"
    UNSPOKEN = "unspoken"


class MarkdownState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a reader at one place of a Markdown text.

    ``line`` and ``length`` (code points) describe the line of the place; at the start of a line,
    the line before. ``fence`` is the mark that opened the code block around the place.
    """

    line: Line = Line.TEXT
    length: int = 0
    at_line_start: bool = True
    fence: str = ""


START = MarkdownState()

_LINE = re.compile(r"[^\n\r\u2028\u2029]*(?:\r\n|[\n\r\u2028\u2029])|[^\n\r\u2028\u2029]+")
_BREAKS = "\n\r\u2028\u2029"
_FENCE = re.compile(r"[ \t>]*(?:[-*+][ \t]+)?(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})")
_MARKERS = re.compile(r"[ \t]*(?:(?:>|[-*+•‣◦▪·](?=[ \t]))[ \t]*)+")
_NUMBER = re.compile(r"[ \t]*\d{1,9}[.)](?=[ \t])")
_BOX = re.compile(r"[ \t]*\[[ xX]\](?=[ \t])")
_HEADING = re.compile(r"[ \t]*#{1,6}(?=[ \t]|\Z)")
_ROW = re.compile(r"[ \t]*\|[^|]*\|")
_ONLY_SIGNS = re.compile(r"[-=*_~+|: \t]{2,}\Z")
_REST_OF_SIGNS = re.compile(r"[-=*_~+|: \t]*(?:[\n\r\u2028\u2029]|\Z)")
_DEFINITION = re.compile(
    r"[ ]{0,3}\[[^\[\]^][^\[\]]{0,200}\]:[ \t]*<?(?:[a-zA-Z][a-zA-Z0-9+.-]{0,30}:|[/#]|\.{1,2}/|www\.)\S"
)
_NOTE = re.compile(r"[ ]{0,3}\[\^[^\[\]\s]{1,64}\]:")


def read(text: str, place: MarkdownState = START, following: str = "") -> tuple[str, MarkdownState]:
    """Return the words of a piece that begins at ``place``, and the place after the piece.

    ``following`` is the text after it, which says what its last line is: "- " may begin an item.
    """
    said: list[str] = []
    for line in _LINE.findall(text):
        words, place = _line(line, place, following)
        said.append(words)
    return "".join(said), place


def _line(line: str, place: MarkdownState, following: str) -> tuple[str, MarkdownState]:
    body = line.rstrip(_BREAKS)
    ending = line[len(body) :]
    if place.at_line_start:
        is_whole = ending or _REST_OF_SIGNS.match(following)
        body, place = _begun(body, replace(place, length=0), is_whole=bool(is_whole))
    words = _said(body, place)
    length = place.length + len(line) - len(ending)
    return words + ending, replace(place, length=length, at_line_start=bool(ending))


def _said(body: str, place: MarkdownState) -> str:
    match place.line:
        case Line.UNSPOKEN:
            return ""
        case Line.CODE:
            return code_words(body)
        case Line.ROW:
            return table_row(body)
        case Line.HEADING:
            return inline(_without_closing_marks(body))
        case _:
            return inline(body)


def _begun(body: str, place: MarkdownState, *, is_whole: bool) -> tuple[str, MarkdownState]:
    """Remove the marks at the beginning of a line; return the rest and the kind of line.

    ``is_whole``: whether at most signs follow ``body`` in its line.
    """
    fence = _FENCE.match(body)
    if place.fence:
        if fence and _closes(body, fence["mark"], place.fence):
            return "", replace(place, line=Line.UNSPOKEN, fence="")
        return body, replace(place, line=Line.CODE)
    if fence:
        return "", replace(place, line=Line.UNSPOKEN, fence=fence["mark"])
    if (is_whole and _ONLY_SIGNS.match(body)) or _DEFINITION.match(body):
        return "", replace(place, line=Line.UNSPOKEN)
    rest, kind = _unmarked(body)
    return rest, replace(place, line=kind)


def _closes(body: str, mark: str, opened: str) -> bool:
    return mark.startswith(opened) and body.rstrip(" \t").endswith(mark)


def _unmarked(body: str) -> tuple[str, Line]:
    kind = Line.TEXT
    if markers := _MARKERS.match(body):
        body = body[markers.end() :]
        kind = Line.TEXT if set(markers[0]) <= set("> \t") else Line.ITEM
    if heading := _HEADING.match(body):
        return body[heading.end() :], Line.HEADING
    if _ROW.match(body):
        return body, Line.ROW
    number = ""
    if numbered := _NUMBER.match(body):
        number, body, kind = numbered[0], body[numbered.end() :], Line.ITEM
    if kind is Line.ITEM and (box := _BOX.match(body)):
        body = body[box.end() :]
    elif note := _NOTE.match(body):
        body = body[note.end() :]
    return number + body, kind


def _without_closing_marks(heading: str) -> str:
    """Remove the marks at the end of ``Head ##``; ``C#`` keeps its sign."""
    bare = heading.rstrip(" \t")
    unmarked = bare.rstrip("#")
    return unmarked if not unmarked or unmarked[-1] in " \t" else heading
