"""What is to be spoken, in order: sentences with the pauses and sounds that belong to them.

Joins the tag reader and the sentence splitter. A tag travels through the splitter as one
private-use character, so it neither ends a sentence nor hides that one ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from speech.text.sentences import SentenceSplitter
from speech.text.tags import Part, TagReader, Text, characters, has_words, require_words

_MARK = "\ue0f1"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One frame of the WebSocket stream. ``parts`` keep every character of the text."""

    parts: tuple[Part, ...]

    @property
    def characters(self) -> int:
        """Code points to meter. Summed over all sentences: those of the whole text."""
        return characters(self.parts)

    @property
    def has_words(self) -> bool:
        """False for a rest of blanks, marks and tags after the last words: nothing to speak."""
        return any(isinstance(part, Text) and has_words(part.text) for part in self.parts)


class Script:
    """Sentences of a text that arrives in pieces, tags included.

    Joined pieces give the same sentences wherever they were cut.
    """

    def __init__(self) -> None:
        self._tags = TagReader()
        self._splitter = SentenceSplitter()
        self._marked: list[Part] = []

    def feed(self, text: str) -> list[Sentence]:
        """Sentences that are surely complete now. Raises ``PauseTooLong``, ``TooManyPauses``."""
        return self._split(self._tags.feed(text))

    def finish(self) -> list[Sentence]:
        """The sentences that are left, at the end or to be spoken at once (``flush``)."""
        sentences = self._split(self._tags.finish())
        return sentences + [self._sentence(text) for text in self._splitter.flush()]

    def _split(self, parts: list[Part]) -> list[Sentence]:
        sentences: list[Sentence] = []
        for part in parts:
            sentences += map(self._sentence, self._splitter.feed(self._marking(part)))
        return sentences

    def _marking(self, part: Part) -> str:
        if not isinstance(part, Text):
            self._marked.append(part)
            return _MARK
        self._marked += [Text(_MARK)] * part.text.count(_MARK)
        return part.text

    def _sentence(self, text: str) -> Sentence:
        parts: list[Part] = []
        first, *others = text.split(_MARK)
        pieces: list[Part] = [Text(first)]
        for other in others:
            pieces += [self._marked.pop(0), Text(other)]
        for piece in pieces:
            last = parts[-1] if parts else None
            if isinstance(piece, Text) and isinstance(last, Text):
                parts[-1] = Text(last.text + piece.text)
            elif piece != Text(""):
                parts.append(piece)
        return Sentence(tuple(parts))


def sentences_of(text: str) -> list[Sentence]:
    """All sentences of a whole text. Raises ``TagError``: also when there are no words."""
    script = Script()
    sentences = [*script.feed(text), *script.finish()]
    require_words(part for sentence in sentences for part in sentence.parts)
    return sentences
