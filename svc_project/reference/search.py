"""Search over guides, operations, fields and errors: one index in memory, read by pages and by a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

from django.urls import reverse

from svc_project.openapi import DOCUMENTS
from svc_project.reference import error_guide
from svc_project.reference.documents import operations_of
from svc_project.reference.guides import GUIDES, text_of

LONGEST: Final = 100
"""Characters of a query."""
MOST: Final = 20
_SHOWN: Final = 150
_BEFORE: Final = 50
"""Characters of a text that are shown, and those of them before the word that was searched."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the docs. ``where`` names its page; ``rank`` is lower for what is shown first."""

    title: str
    where: str
    href: str
    text: str
    rank: int


@dataclass(frozen=True, slots=True)
class Found:
    """An entry as a result, with a part of its text."""

    title: str
    where: str
    href: str
    text: str


def find(query: str) -> list[Found]:
    """The places that have every word of ``query``, best first, ``MOST`` at most.

    Places that say the same, as a field of several operations does, are one.
    """
    words = query[:LONGEST].lower().split()
    if not words:
        return []
    hits = [
        (score, number)
        for number, (title, whole, entry) in enumerate(_index())
        if all(word in whole for word in words)
        for score in (_score(title, words, entry.rank),)
    ]
    same: dict[tuple[str, str], list[Entry]] = {}
    for _, number in sorted(hits):
        entry = _index()[number][2]
        same.setdefault((entry.title, entry.text), []).append(entry)
    return [_found(entries, words[0]) for entries in list(same.values())[:MOST]]


def _score(title: str, words: list[str], rank: int) -> tuple[bool, int, int, int]:
    """Lower is better: a title that is the query, then titles with most of its words, then short ones."""
    named = sum(word in title for word in words)
    return title != " ".join(words), -named, rank, len(title)


def _found(entries: list[Entry], word: str) -> Found:
    """The first of ``entries``, which say the same, with so much of the text as is shown, near ``word``."""
    entry, others = entries[0], len(entries) - 1
    where = f"{entry.where} and {others} more" if others else entry.where
    text = entry.text.replace("`", "")
    at = text.lower().find(word)
    if at > _SHOWN // 2:
        text = f"… {text[at - _BEFORE :].partition(' ')[2]}"
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN].rsplit(' ', 1)[0]} …"
    return Found(entry.title, where, entry.href, text)


@lru_cache(maxsize=1)
def _index() -> list[tuple[str, str, Entry]]:
    """Every entry with its title and all its words in lower case."""
    return [
        (each.title.lower(), f"{each.title} {each.where} {each.text}".lower(), each)
        for each in chain(_of_guides(), _of_operations(), _of_errors())
    ]


def _of_guides() -> Iterator[Entry]:
    for name, guide in GUIDES.items():
        page = reverse("docs-guide", args=[name])
        for section in text_of(name).sections:
            href = f"{page}#{section.anchor}" if section.anchor else page
            text = section.text or guide.about
            yield Entry(section.title, guide.title, href, text, 0 if section.level == 1 else 1)


def _of_operations() -> Iterator[Entry]:
    for name in DOCUMENTS:
        page = reverse(f"docs-{name}")
        for each in operations_of(name):
            title = f"{each.method} {each.path}"
            yield Entry(title, each.summary, f"{page}#{each.id}", each.description, 1)
            for field in each.fields():
                yield Entry(field.name, title, f"{page}#{field.anchor}", field.description, 2)


def _of_errors() -> Iterator[Entry]:
    page = reverse("docs-errors")
    for section in error_guide.sections():
        for each in section.entries:
            where = f"Error {each.status}"
            yield Entry(each.name, where, f"{page}#{each.anchor}", f"{each.cause} {each.cure}", 1)
    for code, meaning in error_guide.VIOLATIONS.items():
        yield Entry(code.value, "Schema violation", f"{page}#violations", meaning, 2)
    for number, meaning in error_guide.closes().items():
        yield Entry(number, "Close code of a speech session", f"{page}#closes", meaning, 2)
