"""When an engine speaks each word: words of its text, and their times from what an engine reports.

An engine reports where a word begins, and may report several words as one ("in the" is a single
unit for espeak-ng), so such a unit is divided by how long each word would be alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

import numpy as np

from speech.audio.pcm import QUIET, SAMPLE_RATE, Samples
from speech.engines import SpokenWord

SHORTEST_GAP: Final = 0.06
"""Seconds of silence after which a word has ended; shorter ones are within words, as before a "t"."""

_MOST_JOINED: Final = 5
_LETTER: Final = "[^\\W_]|[\u0900-\u0963\u200c\u200d]"
_WORD: Final = re.compile(rf"(?:{_LETTER})(?:(?:{_LETTER})|['\u2019.](?={_LETTER}))*")


@dataclass(frozen=True, slots=True)
class Unit:
    """Words that an engine reports as one, from ``start`` in seconds.

    ``lengths``: how long each word is alone, in any measure.
    """

    start: float
    words: tuple[str, ...]
    lengths: tuple[float, ...]


def words_of(text: str) -> list[re.Match[str]]:
    """The words of an engine's text; the parts of "well-known" are two."""
    return list(_WORD.finditer(text))


def spoken_words(units: Sequence[Unit], sound: Samples) -> list[SpokenWord]:
    """The words of ``units``, in order, in ``sound``, which is theirs.

    A word ends where the next one begins, or where the silence before that begins.
    """
    whole = len(sound) / SAMPLE_RATE
    starts = [min(max(0.0, unit.start), whole) for unit in units]
    starts = [*accumulate(starts, max), whole]
    loud = np.flatnonzero(np.abs(sound.astype(np.int32)) > QUIET)
    made: list[SpokenWord] = []
    for unit, (start, end) in zip(units, pairwise(starts), strict=True):
        made += _divided(unit, start, _sound_end(loud, start, end))
    return made


def _sound_end(loud: np.ndarray[tuple[int], np.dtype[np.intp]], start: float, end: float) -> float:
    """Where the sound before ``end`` stops; ``end`` unless there is silence."""
    at = int(np.searchsorted(loud, round(end * SAMPLE_RATE)))
    last = (loud[at - 1] + 1) / SAMPLE_RATE if at else 0.0
    return end if end - last < SHORTEST_GAP or last <= start else float(last)


def _divided(unit: Unit, start: float, end: float) -> list[SpokenWord]:
    total = sum(unit.lengths) or 1.0
    edges = [start + (end - start) * part / total for part in accumulate(unit.lengths, initial=0.0)]
    return [
        SpokenWord(word, since, until)
        for word, (since, until) in zip(unit.words, pairwise(edges), strict=True)
    ]


def joined(words: Sequence[float], units: Sequence[float]) -> list[range]:
    """Which of ``words`` each of ``units`` stands for, by their lengths; a unit may stand for none.

    One unit is several words, or one word is several units: of the latter the first has the word.
    Neither order changes, so the best of all ways to pair them is found step by step.
    """
    if len(words) == len(units):
        return [range(at, at + 1) for at in range(len(words))]
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    sums = list(accumulate(words, initial=0.0)), list(accumulate(units, initial=0.0))
    slack = abs(len(words) - len(units)) + 1
    moves = [(k, 1) for k in range(1, _MOST_JOINED)] + [(1, k) for k in range(2, _MOST_JOINED)]
    for i in range(len(words)):
        for j in range(max(0, i - slack), min(len(units), i + slack + 1)):
            if (i, j) not in best:
                continue
            cost, _ = best[i, j]
            for more_words, more_units in moves:
                to = i + more_words, j + more_units
                if to[0] > len(words) or to[1] > len(units):
                    continue
                unlike = abs(sums[0][to[0]] - sums[0][i] - sums[1][to[1]] + sums[1][j])
                if to not in best or cost + unlike < best[to][0]:
                    best[to] = cost + unlike, (i, j)
    end = len(words), len(units)
    return _by_share(*sums) if end not in best else _traced(best, end)


def _traced(
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]], end: tuple[int, int]
) -> list[range]:
    found: list[range] = []
    while end != (0, 0):
        before = best[end][1]
        rest = [range(end[0], end[0])] * (end[1] - before[1] - 1)
        found = [range(before[0], end[0]), *rest, *found]
        end = before
    return found


def _by_share(words: Sequence[float], units: Sequence[float]) -> list[range]:
    """The same by the share of the whole length alone; both are running sums."""
    scale = words[-1] / (units[-1] or 1.0)
    edges = [bisect_left(words, unit * scale) for unit in units[:-1]]
    return [range(*pair) for pair in pairwise([*edges, len(words) - 1])]
