"""The script of a request: its sentences, with the audio tags in place.

Both transports use one reader. The WebSocket feeds it text as it comes and gets each sentence as
soon as it is surely complete; HTTP feeds it once. Rules: docs/explain/speech-text.md.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from speech.text import markdown, ssml, tags
from speech.text.sentences import SentenceSplitter, clauses
from speech.text.ssml import SsmlReader
from speech.text.ssml_beginning import is_ssml, may_be_ssml
from speech.text.tags import (
    NothingToSpeak,
    Pause,
    Phonemes,
    Rate,
    Sound,
    TagReader,
    Text,
    has_words,
)

LONGEST_SENTENCE: Final = 4096
"""Code points; a longer one becomes several, so that no sound outgrows the memory of a worker."""

LONG_READING: Final = 500
"""Code points; a longer text takes milliseconds to parse, and is left to the text process."""

SHORT_READING: Final = 16
"""Code points; parsing a shorter text, such as one token, costs no more than the message with it."""

MOST_MARKUP: Final = 500
"""Code points of SSML tags for one sentence that count as spoken with it."""

Mark = Pause | Sound | Rate | Phonemes

Origin = tuple[int, int, int]
"""An offset in a text, where it is in the whole one, and the size there (``Sentence``)."""

_BEGINNING: Final[Origin] = (0, 0, 0)


class _Instead(msgspec.Struct, array_like=True):
    """A text that was fed ``since`` to ``until``, received at ``place``, for which ``metered`` is metered."""

    since: int
    until: int
    metered: str
    place: int

    def share(self, fed: int) -> int:
        """The code points of ``metered`` for what of the text is before ``fed``, in proportion."""
        before = min(max(fed, self.since), self.until) - self.since
        return len(self.metered) * before // (self.until - self.since)


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sentence as it was received; each mark stands before the code point at its offset.

    ``lead`` is the silence before the sentence in seconds. ``place`` is where in the Markdown text
    the sentence begins. ``rate`` is the factor on the voice's pace there. ``origins`` are the offsets
    of ``text`` from which on it was received without a tag in between, and where they are in the
    whole text, with the size of what it stands for there as a whole, 0 where it stands as received; empty:
    from its beginning. ``metered`` is the text that is metered; None: ``text``. ``markup``: code points of
    SSML tags before its end.
    """

    text: str
    marks: tuple[tuple[int, Mark], ...] = ()
    lead: float = 0.0
    place: markdown.MarkdownState = markdown.START
    rate: float = 1.0
    origins: tuple[Origin, ...] = ()
    metered: str | None = None
    markup: int = 0

    @property
    def metered_text(self) -> str:
        """The text as received, without tags, which is metered."""
        return self.text if self.metered is None else self.metered

    @property
    def characters(self) -> int:
        """Code points that are metered: all but tags."""
        return len(self.metered_text)

    @property
    def received_characters(self) -> int:
        """Code points as received that are spoken with it: tags of SSML too, but for long ones."""
        return self.characters + min(self.markup, MOST_MARKUP)

    def received(self, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Where ``spans`` of ``text``, none empty, are in the whole text as received."""
        origins = self.origins or (_BEGINNING,)
        begins = [begin for begin, *_ in origins]

        def of(at: int) -> tuple[int, int]:
            begin, place, size = origins[bisect_right(begins, at) - 1]
            return (place, place + size) if size else (place + at - begin, place + at - begin + 1)

        return [(of(start)[0], of(end - 1)[1]) for start, end in spans]


class ScriptReader(msgspec.Struct):
    """Parses sentences from a text that arrives in pieces. Marks between two go to the second.

    So does the silence between them: when a sentence is returned, it is not yet known whether
    another one follows. Markdown that marks up no words is part of the sentence after it.

    All state is in its fields, so that it can be sent to another process and back.
    """

    _tags: TagReader | SsmlReader = msgspec.field(default_factory=TagReader)
    _beginning: str | None = None
    """The text by which it was not known yet whether all of it is SSML; None when that is settled."""
    _splitter: SentenceSplitter = msgspec.field(default_factory=SentenceSplitter)
    _marks: list[tuple[int, Mark]] = []
    _origins: list[Origin] = []
    """As those of a sentence, for all text that was fed; the last one of the text that was taken."""
    _fed: int = 0
    _taken: int = 0
    _instead: list[_Instead] = []
    """Texts that were fed and not all taken, in whose place others are metered."""
    _counted: int = 0
    """Code points of the whole text as received, up to the end of the last sentence."""
    _held: str = ""
    _held_place: markdown.MarkdownState = markdown.START
    _place: markdown.MarkdownState = markdown.START
    _before: str | None = None
    _paused: bool = False
    _rate: float = 1.0

    @classmethod
    def of_session(cls, *, takes_ssml: bool) -> ScriptReader:
        """A reader that ``takes_ssml`` where the text begins as such."""
        return cls(_beginning="" if takes_ssml else None)

    def feed(self, text: str) -> list[Sentence]:
        """Return the sentences that ``text`` completed. Raises ``speech.text.tags.TagError``."""
        if self._beginning is not None:
            self._beginning = text = self._beginning + text
            if may_be_ssml(text):
                return []
            if is_ssml(text):
                self._tags = SsmlReader()
            self._beginning = None
        return self.feed_parts(self._tags.feed(text))

    def feed_parts(self, parts: Sequence[tags.Part]) -> list[Sentence]:
        """Return the sentences that parts, whose tags are parsed already, completed."""
        return self._sentences(self._read(parts))

    def flush(self) -> list[Sentence]:
        """Return the rest. A piece without words is left out, and its marks wait for words."""
        return self._flushed([])

    def end(self) -> list[Sentence]:
        """Return the rest of a text that is complete. Raises ``speech.text.tags.TagError`` for SSML that
        is not."""
        return self._flushed(self._tags.end() if isinstance(self._tags, SsmlReader) else [])

    @property
    def held(self) -> int:
        """Code points of a beginning or of SSML that the next text is read with."""
        held = self._tags.held if isinstance(self._tags, SsmlReader) else 0
        return held + len(self._beginning or "")

    @property
    def markup_after(self) -> int:
        """Code points of SSML tags after the last sentence, but for long ones; 0 without a sentence."""
        if not isinstance(self._tags, SsmlReader) or not self._counted:
            return 0
        return min(MOST_MARKUP, max(0, self._tags.at - self._counted))

    def _flushed(self, parts: Sequence[tags.Part]) -> list[Sentence]:
        if self._beginning and not self._beginning.isspace():
            parts, self._beginning = self._tags.feed(self._beginning), None
        texts = [*self._read([*parts, *self._tags.finish()]), *self._splitter.flush()]
        sentences = self._sentences(texts)
        if sentences and self._marks:
            # No sentence follows the end of the text, so the marks there go to the last one.
            last = sentences[-1]
            start = self._taken - len(last.text)
            rest = tuple((to - start, mark) for to, mark in self._marks)
            sentences[-1] = replace(last, marks=(*last.marks, *rest))
            self._paused = any(isinstance(mark, Pause) for _, mark in rest)
            self._marks = []
        if self._before is not None:
            self._before += self._held
        # The splitter, too, takes the next text for the start of a line.
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
                fed, place, size = self._origins[-1] if self._origins else _BEGINNING
                if part.size or size or part.at != place + self._fed - fed:
                    self._origins.append((self._fed, part.at, part.size))
                if part.metered is not None:
                    end = self._fed + len(part.text)
                    self._instead.append(_Instead(self._fed, end, part.metered, part.at))
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
        rate = self._rate
        self._rate = next(
            (mark.factor for _, mark in reversed(marks) if isinstance(mark, Rate)), rate
        )
        lead, origins = self._lead(text, marks), self._take_origins(start)
        found = Sentence(
            text, marks, lead, self._held_place, rate, origins, self._metered(text, start)
        )
        if isinstance(self._tags, SsmlReader):
            [(_, end)] = found.received([(len(text) - 1, len(text))])
            end -= self._metered_later(found)
            markup = max(0, end - self._counted - found.characters)
            self._counted = max(self._counted, end)
            found = replace(found, markup=markup)
        return found

    def _metered(self, text: str, start: int) -> str | None:
        """What is metered of ``text``, which was fed from ``start`` on; None: itself.

        Of a text that is metered for another one each sentence has its share.
        """
        pieces: list[str] = []
        at = start
        for each in self._instead:
            if each.since >= self._taken:
                break
            pieces.append(text[at - start : max(each.since, at) - start])
            pieces.append(each.metered[each.share(start) : each.share(self._taken)])
            at = max(at, each.until)
        if not pieces:
            return None
        self._instead = [each for each in self._instead if each.until > self._taken]
        return "".join([*pieces, text[at - start :]])

    def _metered_later(self, found: Sentence) -> int:
        """Code points metered after ``found`` of the text received as a whole in which it ends."""
        _, place, size = (found.origins or (_BEGINNING,))[-1]
        if not size:
            return 0
        return sum(
            len(each.metered) - each.share(self._taken)
            for each in self._instead
            if each.place == place
        )

    def _take_origins(self, start: int) -> tuple[Origin, ...]:
        """The origins of the text from ``start`` to what was taken."""
        known = self._origins
        if not known or known[0][0]:
            known = [_BEGINNING, *known]
        fed = [each for each, *_ in known]
        first, end = bisect_right(fed, start) - 1, bisect_left(fed, self._taken)
        self._origins = known[end - 1 :]
        taken = known[first:end]
        if taken == [_BEGINNING] and not start:
            return ()
        return tuple(
            (max(0, at - start), place + (0 if size else max(0, start - at)), size)
            for at, place, size in taken
        )

    def _lead(self, text: str, marks: tuple[tuple[int, Mark], ...]) -> float:
        """The silence before ``text`` in seconds; 0 beside a pause tag, which gives its own."""
        before, self._before = self._before, text
        pause_before = self._paused
        pause_first, self._paused = _pauses_around(text, marks, self._held_place)
        if before is None or pause_before or pause_first:
            return 0.0
        return tags.between(before, self._held_place, text, self._place)


def _pauses_around(
    text: str, marks: tuple[tuple[int, Mark], ...], place: markdown.MarkdownState
) -> tuple[bool, bool]:
    """Whether a pause stands before the first word of a sentence, and whether one after its last."""
    ends = [at for at, mark in marks if isinstance(mark, Pause)]
    if not ends:
        return False, False
    first_words, _ = markdown.read(text[: ends[0]], place)
    return not has_words(first_words), not has_words(text[ends[-1] :])


class Script(msgspec.Struct, frozen=True, tag=True):
    """A whole text: its sentences, and the ``characters`` that are metered for it."""

    sentences: tuple[Sentence, ...]
    characters: int


def metered_characters(text: str) -> int:
    """Count the metered characters of a whole text, far faster than its sentences are parsed.

    Raises ``speech.text.tags.TagError``, which includes a text without words.
    """
    return tags.characters(_parsed(text))


def _parsed(text: str) -> list[tags.Part]:
    """The parts of a whole text, SSML or not."""
    return ssml.parse(text) if is_ssml(text) else tags.parse(text)


def read_script(text: str) -> Script:
    """Parse a whole text.

    Raises ``speech.text.tags.TagError``, which includes a text without words.
    """
    parts = _parsed(text)
    reader = ScriptReader()
    sentences = [*reader.feed_parts(parts), *reader.flush()]
    if not sentences:
        raise NothingToSpeak
    if rest := reader.waiting:
        last = sentences[-1]
        sentences[-1] = replace(
            last, marks=(*last.marks, *((len(last.text), mark) for mark in rest))
        )
    return Script(tuple(sentences), tags.characters(parts))
