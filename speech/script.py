"""What is to be spoken, sentence by sentence: text with its audio tags in place.

One reader for both transports. The WebSocket feeds it as text comes and takes each sentence as soon
as it is surely complete; HTTP feeds it once. Rules: docs/explain/speech-text.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from speech.text import tags
from speech.text.sentences import SentenceSplitter, clauses
from speech.text.tags import Pause, Sound, TagReader, Text, has_words

LONGEST_SENTENCE: Final = 4096
"""Code points; a longer one becomes several, so that no sound outgrows the memory of a worker."""

_LONG_READING: Final = 500
"""Code points whose reading takes a millisecond or more: done in a thread."""

Mark = Pause | Sound


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words as they were received; each mark belongs before the code point at its offset."""

    text: str
    marks: tuple[tuple[int, Mark], ...] = ()

    @property
    def characters(self) -> int:
        """Code points that are metered: tags are not among them."""
        return len(self.text)


class ScriptReader:
    """Sentences from a text that arrives in pieces. Marks between two sentences go to the second."""

    def __init__(self) -> None:
        self._tags = TagReader()
        self._splitter = SentenceSplitter()
        self._marks: list[tuple[int, Mark]] = []
        self._fed = 0
        self._taken = 0

    def feed(self, text: str) -> list[Sentence]:
        """Sentences that ``text`` completed. Raises ``speech.text.tags.TagError``."""
        return self._sentences(self._read(self._tags.feed(text)))

    def flush(self) -> list[Sentence]:
        """All that is left. A piece without words is left out, and its marks wait for words."""
        texts = [*self._read(self._tags.finish()), *self._splitter.flush()]
        return self._sentences(texts, at_end=True)

    @property
    def waiting(self) -> list[Mark]:
        """Marks that no words have followed yet."""
        return [mark for _, mark in self._marks]

    def _read(self, parts: Sequence[tags.Part]) -> list[str]:
        texts: list[str] = []
        for part in parts:
            if isinstance(part, Text):
                self._fed += len(part.text)
                texts += self._splitter.feed(part.text)
            else:
                self._marks.append((self._fed, part))
        return texts

    def _sentences(self, texts: Sequence[str], *, at_end: bool = False) -> list[Sentence]:
        pieces = [piece for text in texts for piece in clauses(text, LONGEST_SENTENCE)]
        spoken = [at for at, piece in enumerate(pieces) if has_words(piece)]
        last = spoken[-1] if at_end and spoken else -1
        sentences: list[Sentence] = []
        for at, piece in enumerate(pieces):
            start, self._taken = self._taken, self._taken + len(piece)
            if not has_words(piece):
                continue
            # The end of the text has no sentence after it: what stands there belongs to the last.
            end = self._fed + 1 if at == last else self._taken
            marks = tuple((max(0, to - start), mark) for to, mark in self._marks if to < end)
            self._marks = self._marks[len(marks) :]
            sentences.append(Sentence(piece, marks))
        return sentences


@dataclass(frozen=True, slots=True)
class Script:
    """A whole text: its sentences, and the ``characters`` that are metered for it."""

    sentences: tuple[Sentence, ...]
    characters: int


async def read_script(text: str) -> Script:
    """The script of a whole text, read off the event loop when it is long.

    Raises ``speech.text.tags.TagError``, which includes a text without words.
    """
    if len(text) <= _LONG_READING:
        return _script(text)
    return await asyncio.to_thread(_script, text)


def _script(text: str) -> Script:
    parts = tags.parse(text)
    reader = ScriptReader()
    sentences = [*reader.feed(text), *reader.flush()]
    if rest := reader.waiting:
        last = sentences[-1]
        sentences[-1] = replace(
            last, marks=(*last.marks, *((len(last.text), mark) for mark in rest))
        )
    return Script(tuple(sentences), tags.characters(parts))
