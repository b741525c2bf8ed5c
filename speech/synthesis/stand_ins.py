"""Puts a word that stands for its sounds in the place of each word that SSML gives in IPA."""

from __future__ import annotations

import html

from msgspec.structs import replace

from speech.synthesis.script import Mark, Sentence
from speech.text.pronunciations import MOST_STAND_INS, Growth, StandIn, stand_in
from speech.text.tags import Phonemes


def stood_in(
    sentence: Sentence, growth: Growth, *, takes_ipa: bool
) -> tuple[Sentence, list[StandIn]]:
    """``sentence`` without ``Phonemes``, but with stand-ins for their words, and these stand-ins.

    A word stays as it is written where the engine does not take IPA, where ``growth`` refuses its sounds,
    and after ``MOST_STAND_INS``.
    """
    if not any(isinstance(mark, Phonemes) for _, mark in sentence.marks):
        return sentence, []
    text, read = "", 0
    marks: list[tuple[int, Mark]] = []
    stand_ins: list[StandIn] = []
    for at, mark in sentence.marks:
        text, read = text + sentence.text[read:at], max(read, at)
        if not isinstance(mark, Phonemes):
            marks.append((len(text), mark))
            continue
        end = at + mark.size
        if not takes_ipa or end > len(sentence.text) or len(stand_ins) >= MOST_STAND_INS:
            continue
        if not growth.take(len(mark.ipa) - mark.size):
            continue
        word = html.unescape(sentence.text[at:end])
        name = stand_in(len(stand_ins))
        stand_ins.append(StandIn(name, word.strip(), mark.ipa))
        text += _apart(name, text[-1:], sentence.text[end : end + 1])
        read = end
    text += sentence.text[read:]
    return replace(sentence, text=text, marks=tuple(marks)), stand_ins


def _apart(name: str, before: str, after: str) -> str:
    """``name`` with blanks where a letter, a figure or another stand-in is beside it."""
    return _blank(before) + name + _blank(after)


def _blank(beside: str) -> str:
    return " " if beside.isalnum() or beside == "_" else ""
