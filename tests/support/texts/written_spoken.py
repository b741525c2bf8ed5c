"""Pairs of written and spoken text, and the number that the rules read right.

A line of ``written_spoken_*.tsv`` has part, kind, region, written, spoken (equally good readings
stand after ``||``). The rules were tuned on ``tuned`` pairs, and not on ``held-out`` and
``fresh`` ones.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from speech.text.language import Language
from speech.text.normalise.locale import Region
from speech.text.normalise.sentence import normalised

_NO_WORD = re.compile(r"[^\w\u0900-\u097f'’]+")  # noqa: RUF001 the apostrophe is meant


@dataclass(frozen=True, slots=True)
class Pair:
    part: str
    kind: str
    language: Language
    region: Region
    written: str
    spoken: tuple[str, ...]

    @property
    def read(self) -> str:
        """The words that the rules make of a pair's text."""
        return normalised(self.written, self.language, self.region)

    @property
    def is_right(self) -> bool:
        """Whether the words are a right reading; marks and letter case do not count."""
        return words(self.read) in map(words, self.spoken)


def words(text: str) -> list[str]:
    return _NO_WORD.sub(" ", text).casefold().split()


def pairs(language: Language, *parts: str) -> list[Pair]:
    """The pairs of these parts, in the order of the file."""
    return [pair for pair in _pairs(language) if pair.part in parts]


def _pairs(language: Language) -> Iterator[Pair]:
    file = Path(__file__).with_name(f"written_spoken_{language.value}.tsv")
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Pair(
                row["part"],
                row["kind"],
                language,
                Region(row["region"]),
                row["written"],
                tuple(row["spoken"].split(" || ")),
            )


def report(language: Language) -> str:
    """The number of right pairs by kind and part, and the wrong pairs."""
    found = list(_pairs(language))
    lines = []
    for kind in dict.fromkeys(pair.kind for pair in found):
        right = [_right(found, part, kind) for part in ("tuned", "held-out", "fresh")]
        lines.append(f"| {kind} | {' | '.join(right)} |")
    wrong = [f"{pair.part}: {pair.written} -> {pair.read}" for pair in found if not pair.is_right]
    return "\n".join([*lines, *wrong])


def _right(found: list[Pair], part: str, kind: str) -> str:
    of_part = [pair for pair in found if (pair.part, pair.kind) == (part, kind)]
    return f"{sum(pair.is_right for pair in of_part)}/{len(of_part)}"


if __name__ == "__main__":
    for each in Language:
        print(report(each))
