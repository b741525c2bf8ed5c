"""Reads SSML (W3C Speech Synthesis Markup Language 1.1) into the parts that audio tags make too.

Elements: docs/api/speech.md, SSML. The reader is no XML parser: it knows tags, comments and the five
entities of XML, and nothing that expands, loads or declares. It takes time linear in the text, which
may come in pieces.
"""

from __future__ import annotations

import html
import re
from typing import Final

import msgspec

from speech.text import say_as
from speech.text.ssml_beginning import DECLARATION
from speech.text.ssml_elements import (
    FASTEST,
    SLOWEST,
    Element,
    InvalidSsml,
    break_seconds,
    check_phonemes,
    rate_factor,
    required,
)
from speech.text.tags import (
    Part,
    Phonemes,
    Rate,
    TagReader,
    Text,
    has_words,
    require_words,
)

DEEPEST: Final = 32
"""The most elements within each other."""

LONGEST_TAG: Final = 4096
"""Code points of a tag or comment, which is held until its end."""

LONGEST_SAID: Final = 1000
"""Code points of text in a ``say-as`` or ``phoneme``, which is held until the end of the element."""

MOST_SAID: Final = (3, 100)
"""The most code points that a document is spoken as, up to the end of a ``say-as``: so many for each of its
text, and so many more. Only the text is metered, and a sign such as ``!`` has a name of 16 code points."""

_RUN = re.compile(r"[^<]+")
_HALF_ENTITY = re.compile(r"&[^&;\s]{0,9}\Z")
_LONGEST_ENTITY: Final = 10
_WHOLE = re.compile(r"<(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+>")
_MAY_BE_TAG = re.compile(r"<[A-Za-z_/]")
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!-))*+-->")
_BEFORE_ELEMENT = re.compile(rf"{_COMMENT.pattern}|{DECLARATION.pattern}")
_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_ATTRIBUTE = re.compile(
    rf"\s{{1,99}}(?P<name>{_NAME})\s{{0,9}}=\s{{0,9}}(?:\"(?P<double>[^\"<]*)\"|'(?P<single>[^'<]*)')"
)
_START = re.compile(rf"<(?P<name>{_NAME})")
_START_END = re.compile(r"\s{0,99}(?P<empty>/?)>")
_END = re.compile(rf"</(?P<name>{_NAME})\s{{0,99}}>")
_STRAY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_SPACE = re.compile(r"\s")


def parse(text: str) -> list[Part]:
    """Return the parts of an SSML document.

    Metered are the code points of the text as received, without tags and comments, and the alias of
    ``sub`` instead of the text that it replaces. Raises ``InvalidSsml``, and what
    ``speech.text.tags.parse`` raises.
    """
    reader = SsmlReader()
    parts = [*reader.feed(text), *reader.end()]
    require_words(parts)
    return parts


class SsmlReader(msgspec.Struct, tag=True):
    """Reads one document, which arrives in pieces. All offsets are those in the whole document.

    The returned parts, adjacent texts joined, do not depend on where the pieces were cut.
    """

    _text: str = ""
    """The text that was not read yet."""
    _base: int = 0
    """Where it is."""
    _is_begun: bool = False
    _parts: list[Part] = []
    _open: list[Element] = []
    _said: int = 0
    """How much text of an open ``say-as`` or ``phoneme`` is held."""
    _metered: int = 0
    _spoken: int = 0
    """Code points of text so far without blanks, and of what they are spoken as."""
    _tags: TagReader = msgspec.field(default_factory=TagReader)
    _fed: int = 0
    """How much text ``_tags`` has read."""
    _moved: int = 0
    """How much further on in the document the text is that it read last."""

    @property
    def at(self) -> int:
        """How much of the document was read."""
        return self._base

    @property
    def held(self) -> int:
        """Code points that were received and wait for the end of a tag or element."""
        return len(self._text) + self._said

    def feed(self, text: str) -> list[Part]:
        """Return the parts that ``text`` completed. A tag or comment is held until its end.

        Raises ``InvalidSsml``, and what ``TagReader.feed`` raises.
        """
        return self._read(text, is_end=False)

    def finish(self) -> list[Part]:
        """Return the text that may be the beginning of an audio tag; the document goes on."""
        self._add(self._tags.finish())
        return self._taken()

    def end(self) -> list[Part]:
        """Return the rest. Raises as ``feed`` does, and when the document is not complete."""
        return self._read("", is_end=True)

    def _read(self, text: str, *, is_end: bool) -> list[Part]:
        self._text += text
        until, at = self._base + len(self._text), self._base
        while at < until and (self._is_whole(at) or is_end):
            at = self._take(at)
        self._text, self._base = self._text[at - self._base :], at
        if is_end and self._open:
            raise InvalidSsml("this element is not closed.", self._open[-1].at)
        return self._taken()

    def _taken(self) -> list[Part]:
        parts, self._parts = self._parts, []
        return parts

    def _match(self, pattern: re.Pattern[str], at: int) -> re.Match[str] | None:
        return pattern.match(self._text, at - self._base)

    def _is_whole(self, at: int) -> bool:
        """Whether the tag, comment or text can be read, or is surely a mistake.

        Raises ``InvalidSsml`` for a tag or comment that is too long.
        """
        start = at - self._base
        if self._text[start] != "<":
            return self._end_of_run(start) > start
        if self._is_whole_tag(start, min(len(self._text), start + LONGEST_TAG)):
            return True
        if len(self._text) - start > LONGEST_TAG:
            raise InvalidSsml(f"a tag or comment has at most {LONGEST_TAG} characters.", at)
        return False

    def _is_whole_tag(self, start: int, until: int) -> bool:
        """Whether a tag or comment ends in ``_text`` before ``until``, or is surely a mistake."""
        if self._text.startswith("<!--"[: until - start], start):
            end = self._text.find("--", start + 4, until)
            return 0 <= end < until - 2
        if not _MAY_BE_TAG.match(self._text, start) or self._text.find("<", start + 1, until) >= 0:
            return True
        return _WHOLE.match(self._text, start, until) is not None

    def _end_of_run(self, start: int) -> int:
        """Where the text from ``start`` on that can be read ends in ``_text``."""
        end = self._text.find("<", start)
        if end >= 0:
            return end
        half = _HALF_ENTITY.search(self._text, max(start, len(self._text) - _LONGEST_ENTITY))
        return half.start() if half else len(self._text)

    def _take(self, at: int) -> int:
        """Read one tag, comment or run of text; return the offset after it."""
        if self._text[at - self._base] == "<":
            self._add(self._tags.finish())
            return self._take_tag(at)
        start = at - self._base
        # Half an entity at the end of the document is a mistake in it.
        end = self._end_of_run(start)
        run = self._text[start : end if end > start else None]
        self._run(run, at)
        return at + len(run)

    def _take_tag(self, at: int) -> int:
        if unsaid := self._match(_COMMENT if self._is_begun else _BEFORE_ELEMENT, at):
            return self._base + unsaid.end()
        if end := self._match(_END, at):
            self._close(end["name"], at)
            return self._base + end.end()
        start = self._match(_START, at)
        if start is None:
            raise InvalidSsml(self._no_tag(at), at)
        attributes, places, after = self._attributes(self._base + start.end())
        closing = self._match(_START_END, after)
        if closing is None:
            raise InvalidSsml("the tag is not complete.", after)
        self._begin(start["name"], attributes, places, at)
        if closing["empty"]:
            self._close(start["name"], at)
        return self._base + closing.end()

    def _no_tag(self, at: int) -> str:
        """What is wrong with a ``<`` that begins no tag."""
        after = self._text[at - self._base + 1 :][:1]
        if after and after in "!?":
            return (
                "only a comment may begin so, without -- in it."
                " CDATA, DTDs and processing instructions are not taken."
            )
        return "this is no tag of an element. Write < in a text as &lt;."

    def _attributes(self, at: int) -> tuple[dict[str, str], dict[str, int], int]:
        """The attributes, where their values are, and the offset after them."""
        found: dict[str, str] = {}
        places: dict[str, int] = {}
        while attribute := self._match(_ATTRIBUTE, at):
            name, value = attribute["name"], attribute["double"] or attribute["single"] or ""
            if name in found:
                raise InvalidSsml("an attribute is there twice.", at)
            at = self._base + attribute.end()
            places[name] = at - 1 - len(value)
            self._check_entities(value, places[name])
            found[name] = value
        return found, places, at

    def _check_entities(self, text: str, at: int, before: int | None = None) -> None:
        stray = _STRAY.search(text)
        if stray and (before is None or stray.start() < before):
            raise InvalidSsml(
                "& begins no entity of XML (&amp; &lt; &gt; &quot; &apos;). Write it as &amp;.",
                at + stray.start(),
            )

    def _run(self, text: str, at: int) -> None:
        changed = next((one for one in self._open if one.said is not None), None)
        if changed is not None and changed.said is not None:
            self._hold(text, at, changed, changed.said)
            return
        if not self._open:
            if after := text.lstrip().removeprefix("\ufeff").lstrip():
                raise InvalidSsml("there is text after </speak>.", at + len(text) - len(after))
            return
        self._check_entities(text, at)
        if not any(element.is_replaced for element in self._open):
            self._say(text, at)

    def _hold(self, text: str, at: int, changed: Element, said: list[str]) -> None:
        """Keep text until the end of the element ``changed``."""
        # A mistake behind the bound is not looked for, so that no cut of the text changes the first.
        self._check_entities(text, at, LONGEST_SAID - self._said)
        self._said += len(text)
        if self._said > LONGEST_SAID:
            raise InvalidSsml(
                f"the text of <{changed.name}> has at most {LONGEST_SAID} characters.", changed.at
            )
        changed.span = (changed.span[0] if said else at, at + len(text))
        said.append(text)

    def _say(self, text: str, at: int) -> None:
        """Add text, with audio tags; entities are left for the steps that clean every text."""
        self._moved = at - self._fed
        self._fed += len(text)
        said = sum(map(len, text.split()))
        self._metered += said
        self._spoken += said
        self._add(self._tags.feed(text))

    def _add(self, parts: list[Part]) -> None:
        """Add what ``_tags`` has read. Line ends mean nothing in it."""
        self._parts += (
            Text(_SPACE.sub(" ", part.text), part.at + self._moved)
            if isinstance(part, Text)
            else part
            for part in parts
        )

    def _say_instead(self, words: str, received: str, span: tuple[int, int]) -> None:
        """Add ``words`` that are spoken for the ``received`` text within ``span``, which is metered."""
        start, end = span
        self._fed += len(words)
        said = [*self._tags.feed(words), *self._tags.finish()]
        whole = sum(len(part.text) for part in said if isinstance(part, Text))
        read = shared = 0
        for part in said:
            if not isinstance(part, Text):
                self._parts.append(part)
                continue
            # Tags may cut the words; each piece has its share of what is metered.
            read += len(part.text)
            since, shared = shared, len(received) * read // whole
            text, metered = _SPACE.sub(" ", part.text), received[since:shared]
            self._parts.append(Text(text, start, end - start, metered))
        if received and not whole:
            self._parts.append(Text(" ", start, end - start, received))

    def _say_phonemes(self, element: Element, received: str) -> None:
        if not has_words(html.unescape(received)):
            raise InvalidSsml("<phoneme> needs the word that it is about, as text.", element.at)
        start, end = element.span
        text = _SPACE.sub(" ", received)
        self._parts.append(Phonemes(html.unescape(element.attributes["ph"]), len(text)))
        self._parts.append(Text(text, start, end - start, received))

    def _begin(
        self, name: str, attributes: dict[str, str], places: dict[str, int], at: int
    ) -> None:
        if not self._open and (name != "speak" or self._is_begun):
            raise InvalidSsml("there must be one <speak> around everything.", at)
        self._is_begun = True
        if len(self._open) >= DEEPEST:
            raise InvalidSsml(f"more than {DEEPEST} elements are within each other.", at)
        rate = self._open[-1].rate if self._open else 1.0
        element = Element(name, attributes, places, rate, at)
        # Nothing within an element that is changed as a whole has an effect of its own.
        if not any(one.is_replaced or one.said is not None for one in self._open):
            self._enter(element)
        self._open.append(element)

    def _enter(self, element: Element) -> None:
        match element.name:
            case "break":
                seconds = break_seconds(element)
                if seconds:
                    self._parts.append(self._tags.pause(seconds, f"of {seconds:g} s"))
            case "p" | "s":
                self._boundary(element.name, element.at)
            case "sub":
                element.is_replaced = True
                self._say(required(element, "alias"), element.places["alias"])
                self._add(self._tags.finish())
            case "say-as":
                required(element, "interpret-as")
                element.said = []
            case "phoneme":
                check_phonemes(element)
                element.said = []
            case "prosody":
                self._change_rate(element)

    def _boundary(self, name: str, at: int) -> None:
        """End a line, or a paragraph, for the splitter of sentences; it is not metered."""
        self._parts.append(Text("\n\n" if name == "p" else "\n", at, metered=""))

    def _allow(self, received: int, spoken: int, at: int) -> None:
        """Count a ``say-as``. Raises ``InvalidSsml`` where the document so far is spoken as too much."""
        self._metered += received
        self._spoken += spoken
        if self._spoken > MOST_SAID[0] * self._metered + MOST_SAID[1]:
            raise InvalidSsml(
                f"with the names of the signs in <say-as> {self._spoken} characters are spoken for"
                f" {self._metered}; {MOST_SAID[0]} for each and {MOST_SAID[1]} may be spoken."
                " Send fewer signs.",
                at,
            )

    def _change_rate(self, element: Element) -> None:
        factor = rate_factor(element.attributes.get("rate", "default").strip(), element.at)
        changed = max(SLOWEST, min(FASTEST, element.rate * factor))
        if changed != element.rate:
            element.rate = changed
            self._parts.append(Rate(changed))

    def _close(self, name: str, at: int) -> None:
        if not self._open or self._open[-1].name != name:
            raise InvalidSsml("this tag closes no element that is open there.", at)
        element = self._open.pop()
        if element.said is not None:
            self._said = 0
        if element.said is not None and element.name == "phoneme":
            self._say_phonemes(element, "".join(element.said))
        elif element.said is not None:
            kind, form = (element.attributes.get(one, "") for one in ("interpret-as", "format"))
            received = "".join(element.said)
            words = say_as.words(html.unescape(received), kind, form)
            self._allow(len(received), len(words), element.at)
            self._say_instead(html.escape(words, quote=False), received, element.span)
        elif name in ("p", "s") and not any(one.said is not None for one in self._open):
            self._boundary(name, at)
        before = self._open[-1].rate if self._open else 1.0
        if element.rate != before:
            self._parts.append(Rate(before))
