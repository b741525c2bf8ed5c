"""Sentences of many kinds of writing, and how many the whole way of a text reads right.

A line of ``reading_*.tsv`` has part, kind, region, written, spoken. Each part was written before one
of its sentences was tried. The rules were made with the misses of the ``development`` part, and the
``scored`` part was first measured afterwards. ``fresh`` to ``fresh6`` have other authors,
who did not know the rules, but the sixth some of them (docs/explain/speech-reading.md). ``a|b`` in the spoken
words are equally good words, ``a_b`` is two words, and ``a|`` may be missing.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from speech.synthesis.script import ScriptReader
from speech.text import markdown, preparation
from speech.text.language import Language
from speech.text.normalise.locale import Region
from tests.support.texts.hindi_reading import sounds
from tests.support.texts.written_spoken import words

_EDGES = re.compile(r"(?<!\w)['’]+|['’]+(?!\w)")  # noqa: RUF001 the apostrophe is meant


@dataclass(frozen=True, slots=True)
class Line:
    part: str
    kind: str
    language: Language
    region: Region
    written: str
    spoken: str

    @property
    def read(self) -> str:
        """The words that an engine gets."""
        reader = ScriptReader()
        said: list[str] = []
        for sentence in [*reader.feed(self.written), *reader.flush()]:
            plain, _ = markdown.read(sentence.text, sentence.place)
            said.append(
                preparation.prepared(plain, self.language, self.region, only_clean=False).strip()
            )
        return " ".join(said)

    @property
    def is_right(self) -> bool:
        """Whether every word is right; marks, letter case, nukta and chandrabindu do not count."""
        plain = _EDGES.sub(" ", sounds(self.read).replace("।", " "))
        read = "".join(f" {word}" for word in words(plain))
        return re.fullmatch("".join(map(_pattern, self.spoken.split())), read) is not None


def _pattern(choice: str) -> str:
    words_of = [
        _EDGES.sub("", sounds(each)).casefold().replace("_", " ") for each in choice.split("|")
    ]
    found = "|".join(f" {re.escape(each)}" for each in words_of if each)
    return f"(?:{found})" + ("?" if "" in words_of else "")


def lines(part: str) -> list[Line]:
    """The lines of a part, of both languages."""
    found: list[Line] = []
    for language in Language:
        file = Path(__file__).with_name(f"reading_{language.value}.tsv")
        with file.open(encoding="utf-8", newline="") as text:
            found += [
                Line(row["part"], row["kind"], language, Region(row["region"]), row["written"], row["spoken"])
                for row in csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
                if row["part"] == part
            ]  # fmt: skip
    return found


def report(part: str) -> str:
    """The number of right lines by kind, and the wrong lines."""
    every = lines(part)
    right = Counter(line.kind for line in every if line.is_right)
    of = Counter(line.kind for line in every)
    counts = [f"{kind}: {right[kind]} of {of[kind]}" for kind in of]
    wrong = [f"{line.region} {line.written} -> {line.read}" for line in every if not line.is_right]
    return "\n".join([*wrong, *counts, f"{right.total()} of {len(every)}"])


if __name__ == "__main__":
    print(report(sys.argv[1]))
