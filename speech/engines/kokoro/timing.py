"""When Kokoro-82M speaks each word: from the frames that its tokens last.

Its phonemes come without the borders of words where espeak-ng joins two ("in the"), so the words of a
clause are paired with the groups of its symbols by their lengths (``speech.engines.word_times``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from speech.audio.pcm import SAMPLE_RATE
from speech.engines.kokoro.phonemes import tokens
from speech.engines.kokoro.runs import Run
from speech.engines.word_times import Unit, joined

_FRAME: Final = 600 / SAMPLE_RATE
"""Seconds."""

_LATE: Final = 3 * _FRAME
"""Seconds by which a token is heard before its frames begin: the median, against forced alignment
(docs/measurements/speech.md)."""


@dataclass(frozen=True, slots=True)
class Group:
    """The words of a group of symbols that stands between spaces, and the symbols of each alone."""

    words: tuple[str, ...]
    lengths: tuple[float, ...]


def symbol_groups(symbols: str) -> list[str]:
    """The groups of symbols between spaces."""
    return symbols.split()


def groups_of(words: Sequence[str], alone: Sequence[str], symbols: str) -> list[Group]:
    """The words of each group of a clause's ``symbols``; ``alone`` are those of each word by itself."""
    lengths = [max(1.0, len(each)) for each in alone]
    found = joined(lengths, [float(len(group)) for group in symbol_groups(symbols)])
    return [
        Group(tuple(words[at] for at in each), tuple(lengths[at] for at in each)) for each in found
    ]


def units(run: Run, groups: Iterator[Group], frames: Sequence[int]) -> list[Unit]:
    """The words of ``run``, which takes its groups from ``groups``, by the ``frames`` of its tokens."""
    begins = list(accumulate(frames, initial=0))
    found: list[Unit] = []
    at = 1  # the model's own first token is before them
    for symbols in symbol_groups(run.symbols):
        group = next(groups, Group((), ()))
        if group.words and at < len(begins):
            found.append(Unit(begins[at] * _FRAME - _LATE, group.words, group.lengths))
        at += len(tokens(symbols)) + len(tokens(" "))
    return found
