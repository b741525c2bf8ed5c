"""What is to be spoken, sentence by sentence: text with its audio tags in place.

One reader for both transports. The WebSocket feeds it as text comes and takes each sentence as soon
as it is surely complete; HTTP feeds it once. Rules: docs/explain/speech-text.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from speech.text import markdown, pauses, tags
from speech.text.sentences import SentenceSplitter, clauses
from speech.text.tags import NothingToSpeak, Pause, Sound, TagReader, Text, has_words

LONGEST_SENTENCE: Final = 4096
"""Code points; a longer one becomes several, so that no sound outgrows the memory of a worker."""

LONG_READING: Final = 500
"""Code points whose reading takes a millisecond or more: to be done in a thread."""

Mark = Pause | Sound


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words as they were received; each mark belongs before the code point at its offset.

    ``lead`` is the silence before it, in seconds, which parts it from the sentence before.
    ``place`` is where in the Markdown text it begins.
    """

    text: str
    marks: tuple[tuple[int, Mark], ...] = ()
    lead: float = 0.0
    place: markdown.Place = markdown.START

    @property
    def characters(self) -> int:
        """Code points that are metered: tags are not among them."""
        return len(self.text)


class ScriptReader:
    """Sentences from a text that arrives in pieces. Marks between two sentences go to the second.

    So does the silence between them: when a sentence is given, nobody knows whether another one
    follows. Markdown that marks up no words is part of the sentence after it.
    """

    def __init__(self) -> None:
        self._tags = TagReader()
        self._splitter = SentenceSplitter()
        self._marks: list[tuple[int, Mark]] = []
        self._fed = 0
        self._taken = 0
        self._held = ""
        self._held_place = markdown.START
        self._place = markdown.START
        self._before: str | None = None
        self._paused = False

    def feed(self, text: str) -> list[Sentence]:
        """Sentences that ``text`` completed. Raises ``speech.text.tags.TagError``."""
        return self._sentences(self._read(self._tags.feed(text)))

    def flush(self) -> list[Sentence]:
        """All that is left. A piece without words is left out, and its marks wait for words."""
        texts = [*self._read(self._tags.finish()), *self._splitter.flush()]
        sentences = self._sentences(texts)
        if sentences and self._marks:
            # The end of the text has no sentence after it: what stands there belongs to the last.
            last = sentences[-1]
            start = self._taken - len(last.text)
            rest = tuple((to - start, mark) for to, mark in self._marks)
            sentences[-1] = replace(last, marks=(*last.marks, *rest))
            self._paused = any(isinstance(mark, Pause) for _, mark in rest)
            self._marks = []
        if self._before is not None:
            self._before += self._held
        # The splitter takes what comes next for the start of a line, too.
        self._place = replace(self._place, at_line_start=True)
        self._held, self._held_place = "", self._place
        self._taken = self._fed
        return sentences

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

    def _sentences(self, texts: Sequence[str]) -> list[Sentence]:
        sentences: list[Sentence] = []
        for piece in (piece for text in texts for piece in clauses(text, LONGEST_SENTENCE)):
            words, self._place = markdown.read(piece, self._place)
            self._held += piece
            if has_words(words):
                sentences.append(self._sentence(self._held))
                self._held, self._held_place = "", self._place
        return sentences

    def _sentence(self, text: str) -> Sentence:
        start, self._taken = self._taken, self._taken + len(text)
        marks = tuple((max(0, to - start), mark) for to, mark in self._marks if to < self._taken)
        self._marks = self._marks[len(marks) :]
        return Sentence(text, marks, self._lead(text, marks), self._held_place)

    def _lead(self, text: str, marks: tuple[tuple[int, Mark], ...]) -> float:
        """The silence before ``text``: none where a pause is written, which is heard as written."""
        before, self._before = self._before, text
        pause_before = self._paused
        pause_first, self._paused = _pauses_around(text, marks, self._held_place)
        if before is None or pause_before or pause_first:
            return 0.0
        return pauses.between(before, self._held_place, text, self._place)


def _pauses_around(
    text: str, marks: tuple[tuple[int, Mark], ...], place: markdown.Place
) -> tuple[bool, bool]:
    """Whether a pause stands before the first word of a sentence, and whether one after its last."""
    ends = [at for at, mark in marks if isinstance(mark, Pause)]
    if not ends:
        return False, False
    first_words, _ = markdown.read(text[: ends[0]], place)
    return not has_words(first_words), not has_words(text[ends[-1] :])


@dataclass(frozen=True, slots=True)
class Script:
    """A whole text: its sentences, and the ``characters`` that are metered for it."""

    sentences: tuple[Sentence, ...]
    characters: int


def metered_characters(text: str) -> int:
    """What is metered for a whole text, which is far quicker to say than its sentences are.

    Raises ``speech.text.tags.TagError``, which includes a text without words.
    """
    return tags.characters(tags.parse(text))


def read_script(text: str) -> Script:
    """The script of a whole text.

    Raises ``speech.text.tags.TagError``, which includes a text without words.
    """
    parts = tags.parse(text)
    reader = ScriptReader()
    sentences = [*reader.feed(text), *reader.flush()]
    if not sentences:
        raise NothingToSpeak
    if rest := reader.waiting:
        last = sentences[-1]
        sentences[-1] = replace(
            last, marks=(*last.marks, *((len(last.text), mark) for mark in rest))
        )
    return Script(tuple(sentences), tags.characters(parts))
