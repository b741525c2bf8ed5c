"""Inline audio tags: pauses, sounds and manners of speaking, written into the text.

Syntax and limits: docs/explain/speech-text.md, Inline audio tags. Case does not matter. Every
bracket that is not a tag is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from speech.text.markdown import Line, MarkdownState
from speech.text.markdown_inline import is_word

LONGEST_PAUSE = 5.0
"""The longest pause, in seconds."""

MOST_PAUSES = 20
"""The most pauses in one HTTP request or one WebSocket session."""


class TagError(ValueError):
    """The text's tags are invalid. The message is for the client."""


class PauseTooLong(TagError):
    def __init__(self, tag: str) -> None:
        super().__init__(
            f"The pause {tag} is too long. A pause may last at most {LONGEST_PAUSE:g} seconds."
        )


class TooManyPauses(TagError):
    def __init__(self) -> None:
        super().__init__(
            f"The text has more than {MOST_PAUSES} pauses. Leave some out, or send several requests."
        )


class NothingToSpeak(TagError):
    def __init__(self) -> None:
        super().__init__("The text has no words to speak. Add at least one letter or digit.")


class SoundName(StrEnum):
    """Sounds and manners of speaking. An engine that has no such sound drops it."""

    LAUGHS = "laughs"
    CHUCKLES = "chuckles"
    SIGHS = "sighs"
    GASPS = "gasps"
    COUGHS = "coughs"
    SNIFFS = "sniffs"
    GROANS = "groans"
    YAWNS = "yawns"
    CLEARS_THROAT = "clears throat"
    WHISPERS = "whispers"
    EXCITED = "excited"
    SAD = "sad"
    CALM = "calm"


class Text(msgspec.Struct, frozen=True, tag=True):
    """Words to speak; ``at`` is their offset in the whole text as received.

    They stand for ``size`` code points there as a whole; 0: they are those, one for one. ``metered``
    is the text that is metered in their place; None: they themselves.
    """

    text: str
    at: int = 0
    size: int = 0
    metered: str | None = None


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Silence, in seconds."""

    seconds: float


class Sound(msgspec.Struct, frozen=True, tag=True):
    """A sound or a manner of speaking, by its canonical name."""

    name: SoundName


class Rate(msgspec.Struct, frozen=True, tag=True):
    """A factor on the voice's pace from here on (SSML's ``prosody``)."""

    factor: float


class Phonemes(msgspec.Struct, frozen=True, tag=True):
    """The next ``size`` code points of text are spoken as ``ipa`` (SSML's ``phoneme``)."""

    ipa: str
    size: int


Part = Text | Pause | Sound | Rate | Phonemes

_PAUSES = {"pause": 0.5, "short pause": 0.25, "long pause": 1.0}


def _sound_spellings() -> dict[str, SoundName]:
    spellings = {name.value: name for name in SoundName}
    for name in SoundName:
        if name is SoundName.CLEARS_THROAT:
            spellings["clear throat"] = name
        elif name.value.endswith("s"):
            spellings[name.value.removesuffix("s")] = name
    return spellings


_SOUNDS = _sound_spellings()
_LENGTH = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_TAG = re.compile(
    rf"\[pause:(?P<amount>{_LENGTH})(?P<unit>ms|s)\]"
    r"|\[(?P<name>" + "|".join(map(re.escape, [*_PAUSES, *_SOUNDS])) + r")\]"
    rf"|<break[ ]{{1,4}}time=[\"'](?P<break_amount>{_LENGTH})(?P<break_unit>ms|s)[\"'][ ]{{0,4}}/>",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_TAG = 64
_OPEN_TAG = re.compile(rf"[\[<][^\[\]<>]{{0,{_LONGEST_TAG - 2}}}\Z")


def parse(text: str) -> list[Part]:
    """Cut ``text`` into its parts; adjacent texts are one part.

    Raises ``PauseTooLong``, ``TooManyPauses``, and ``NothingToSpeak`` when the text without tags
    has no letter or digit.
    """
    parts = TagReader()._read(text)
    require_words(parts)
    return parts


def require_words(parts: Iterable[Part]) -> None:
    """Raise ``NothingToSpeak`` unless some text among ``parts`` has a letter or digit."""
    if not any(isinstance(part, Text) and has_words(part.text) for part in parts):
        raise NothingToSpeak


def has_words(text: str) -> bool:
    """Whether there is a letter or digit of any script."""
    return any(map(str.isalnum, text))


def characters(parts: Sequence[Part]) -> int:
    """Count the metered characters: code points of the text as received, without tags."""
    texts = (part for part in parts if isinstance(part, Text))
    return sum(len(part.text if part.metered is None else part.metered) for part in texts)


class TagReader(msgspec.Struct, tag=True):
    """Parses tags in a text that arrives in pieces; a tag may be split anywhere.

    The returned texts, joined, do not depend on where the pieces were cut.
    """

    _held: str = ""
    _pauses: int = 0
    _read_before: int = 0

    def feed(self, text: str) -> list[Part]:
        """Return the complete parts. A possible beginning of a tag, at most 64 characters, is held.

        Raises ``PauseTooLong`` and ``TooManyPauses``.
        """
        text = self._held + text
        opened = _OPEN_TAG.search(text)
        cut = opened.start() if opened else len(text)
        self._held = text[cut:]
        return self._read(text[:cut])

    def finish(self) -> list[Part]:
        """Return the held characters as text."""
        held, self._held = self._held, ""
        return self._read(held)

    def _read(self, text: str) -> list[Part]:
        parts: list[Part] = []
        start = 0
        for tag in _TAG.finditer(text):
            if tag.start() > start:
                parts.append(Text(text[start : tag.start()], self._read_before + start))
            parts.append(self._part(tag))
            start = tag.end()
        if start < len(text):
            parts.append(Text(text[start:], self._read_before + start))
        self._read_before += len(text)
        return parts

    def _part(self, tag: re.Match[str]) -> Part:
        name = (tag["name"] or "").lower()
        if name in _SOUNDS:
            return Sound(_SOUNDS[name])
        return self.pause(_PAUSES[name] if name else _seconds(tag), tag[0])

    def pause(self, seconds: float, written: str) -> Pause:
        """Count a pause. Raises ``PauseTooLong``, which quotes ``written``, and ``TooManyPauses``."""
        if seconds > LONGEST_PAUSE:
            raise PauseTooLong(written)
        self._pauses += 1
        if self._pauses > MOST_PAUSES:
            raise TooManyPauses
        return Pause(seconds)


def _seconds(tag: re.Match[str]) -> float:
    amount = float(tag["amount"] or tag["break_amount"])
    unit = (tag["unit"] or tag["break_unit"]).lower()
    return amount / 1000 if unit == "ms" else amount


AFTER_CLAUSE: Final = 0.08
"""Seconds after a part that was cut at a comma: engines make no pause at the end of a part."""

AFTER_SENTENCE: Final = 0.23
"""Seconds. A part keeps some silence at its edges, so the pause sounds as 0.2 to 0.3 s."""

AFTER_LINE: Final = 0.3
"""Seconds between lines: items of a list, rows of a table, verses."""

AFTER_PARAGRAPH: Final = 0.43
"""Seconds. A part keeps some silence at its edges, so the pause sounds as 0.4 to 0.5 s."""

_WRAPPED_LINE: Final = 50
"""Code points from which a line without a full stop may go on in the next one."""

_BREAK = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_NOTES = re.compile(r"(?:\[[^\[\]\s]{1,64}\])+\Z")
_LONGEST_END = 200
_CLOSING = " \t\n\r\u2028\u2029)]}\"'”’»*_~`"  # noqa: RUF001 quotes of all kinds
_CLAUSE_MARKS = ",;:—–-"  # noqa: RUF001 the dash is meant


def between(before: str, place: MarkdownState, after: str, next_place: MarkdownState) -> float:
    """Seconds of silence between two texts as they were received, one sentence each.

    ``place`` is where the first one ended, ``next_place`` where the second one did.
    """
    breaks = len(_BREAK.findall(before[len(before.rstrip()) :] + after.rstrip()))
    if not breaks:
        return after_part(before)
    headed = Line.HEADING in (place.line, next_place.line)
    in_code = place.line is Line.CODE and next_place.line is Line.CODE
    if headed or (breaks > 1 and not in_code):
        return AFTER_PARAGRAPH
    return 0.0 if _goes_on(before, place, after.strip()) else AFTER_LINE


def after_part(text: str) -> float:
    """Seconds of silence after a part of a line, by its last mark; 0 within a phrase."""
    end = _NOTES.sub("", text.rstrip()[-_LONGEST_END:]).rstrip(_CLOSING)[-1:]
    if not end or is_word(end):
        return 0.0
    return AFTER_CLAUSE if end in _CLAUSE_MARKS else AFTER_SENTENCE


def _goes_on(before: str, place: MarkdownState, after: str) -> bool:
    """Whether a line was only wrapped: it is long and unfinished, and the next is lower-case."""
    wrapped = place.line in (Line.TEXT, Line.ITEM) and place.length >= _WRAPPED_LINE
    return wrapped and not after_part(before) and after[:1].isalpha() and not after[0].isupper()
