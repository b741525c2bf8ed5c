"""Reads SSML (W3C Speech Synthesis Markup Language 1.1) into the parts that audio tags make too.

Elements: docs/api/speech.md, SSML. The reader is no XML parser: it knows tags, comments and the five
entities of XML, and nothing that expands, loads or declares. It takes time linear in the text.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Final

from speech.text import say_as
from speech.text.tags import Part, Rate, TagError, TagReader, Text, characters, require_words

DEEPEST: Final = 32
"""The most elements within each other."""

SLOWEST: Final = 0.25
FASTEST: Final = 4.0
"""Bounds of the factor that all ``prosody`` elements around a text make together."""

_BEGIN = re.compile(r"\s*<speak(?=[\s/>])")
_RUN = re.compile(r"[^<]+")
_COMMENT = re.compile(r"<!--(?:[^-]|-(?!-))*+-->")
_NAME = r"[A-Za-z_][\w.:-]{0,63}"
_ATTRIBUTE = re.compile(
    rf"\s{{1,99}}(?P<name>{_NAME})\s{{0,9}}=\s{{0,9}}(?:\"(?P<double>[^\"<]*)\"|'(?P<single>[^'<]*)')"
)
_START = re.compile(rf"<(?P<name>{_NAME})")
_START_END = re.compile(r"\s{0,99}(?P<empty>/?)>")
_END = re.compile(rf"</(?P<name>{_NAME})\s{{0,99}}>")
_STRAY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_SPACE = re.compile(r"\s")
_TIME = re.compile(r"\+?(?P<amount>[0-9]{1,9}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})(?P<unit>ms|s)")
_STRENGTHS: Final = {
    "none": 0.0, "x-weak": 0.15, "weak": 0.25, "medium": 0.5, "strong": 0.75, "x-strong": 1.0,
}  # fmt: skip
_RATES: Final = {
    "x-slow": 0.5, "slow": 0.75, "medium": 1.0, "default": 1.0, "fast": 1.5, "x-fast": 2.0,
}  # fmt: skip
_FACTOR = re.compile(r"(?P<sign>[+-]?)(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?P<percent>%?)")


class InvalidSsml(TagError):
    """The SSML is broken at an offset in code points. The message quotes nothing of the text."""

    def __init__(self, mistake: str, at: int) -> None:
        super().__init__(f"The SSML is invalid at character {at + 1}: {mistake}")


def is_ssml(text: str) -> bool:
    """Whether ``text`` begins with ``<speak``."""
    return _BEGIN.match(text) is not None


def parse(text: str) -> tuple[list[Part], int]:
    """Return the parts of an SSML document and its metered characters.

    Characters are the code points of the text as received, without tags and comments; the alias of
    ``sub`` counts instead of the text that it replaces. Raises ``InvalidSsml``, and what
    ``speech.text.tags.parse`` raises.
    """
    reader = _Reader(text)
    parts = reader.parts()
    require_words(parts)
    return parts, reader.characters


@dataclass(slots=True)
class _Element:
    name: str
    attributes: dict[str, str]
    places: dict[str, int]
    """Where the values of the attributes are."""
    rate: float
    """The factor that holds within the element."""
    at: int
    is_replaced: bool = False
    said: list[str] | None = None
    """The text of a ``say-as``, which is changed as a whole."""
    span: tuple[int, int] = (0, 0)
    """Where that text is."""


@dataclass(slots=True)
class _Reader:
    """Reads one document."""

    text: str
    characters: int = 0
    _parts: list[Part] = field(default_factory=list)
    _open: list[_Element] = field(default_factory=list)
    _read: int = 0
    """How much text ``_tags`` has read."""
    _tags: TagReader = field(default_factory=TagReader)

    def parts(self) -> list[Part]:
        at = 0
        while at < len(self.text):
            at = self._take(at)
        if self._open:
            raise InvalidSsml("this element is not closed.", self._open[-1].at)
        return self._parts

    def _take(self, at: int) -> int:
        """Read one tag, comment or run of text; return the offset after it."""
        if run := _RUN.match(self.text, at):
            self._run(run)
            return run.end()
        if comment := _COMMENT.match(self.text, at):
            return comment.end()
        if end := _END.match(self.text, at):
            self._close(end["name"], at)
            return end.end()
        start = _START.match(self.text, at)
        if start is None:
            raise InvalidSsml("this is no tag of an element. Write < in a text as &lt;.", at)
        attributes, places, after = self._attributes(start.end())
        closing = _START_END.match(self.text, after)
        if closing is None:
            raise InvalidSsml("the tag is not complete.", after)
        self._begin(start["name"], attributes, places, at)
        if closing["empty"]:
            self._close(start["name"], at)
        return closing.end()

    def _attributes(self, at: int) -> tuple[dict[str, str], dict[str, int], int]:
        """The attributes, where their values are, and the offset after them."""
        found: dict[str, str] = {}
        places: dict[str, int] = {}
        while attribute := _ATTRIBUTE.match(self.text, at):
            name, value = attribute["name"], attribute["double"] or attribute["single"] or ""
            if name in found:
                raise InvalidSsml("an attribute is there twice.", at)
            places[name] = attribute.end() - 1 - len(value)
            self._check_entities(value, places[name])
            found[name] = value
            at = attribute.end()
        return found, places, at

    def _check_entities(self, text: str, at: int) -> None:
        if stray := _STRAY.search(text):
            raise InvalidSsml(
                "& begins no entity of XML (&amp; &lt; &gt; &quot; &apos;). Write it as &amp;.",
                at + stray.start(),
            )

    def _run(self, run: re.Match[str]) -> None:
        text = run[0]
        self._check_entities(text, run.start())
        if not self._open:
            if text.strip():
                raise InvalidSsml("there is text after </speak>.", run.start())
            return
        if any(element.is_replaced for element in self._open):
            return
        changed = next((one for one in self._open if one.said is not None), None)
        if changed is None or changed.said is None:
            self.characters += self._say(text, run.start())
            return
        self.characters += len(text)
        changed.span = (changed.span[0] if changed.said else run.start(), run.end())
        changed.said.append(text)

    def _say(self, text: str, at: int, size: int = 0) -> int:
        """Add text, with audio tags, and return its metered characters; ``at`` and ``size`` as of ``Text``.

        Line ends mean nothing in it; entities are left for the steps that clean every text.
        """
        parts = [*self._tags.feed(text), *self._tags.finish()]
        before, self._read = self._read, self._read + len(text)
        for part in parts:
            if isinstance(part, Text):
                place = at if size else at + part.at - before
                self._parts.append(Text(_SPACE.sub(" ", part.text), place, size))
            else:
                self._parts.append(part)
        return characters(parts)

    def _begin(
        self, name: str, attributes: dict[str, str], places: dict[str, int], at: int
    ) -> None:
        if not self._open and (name != "speak" or self._parts or self.characters):
            raise InvalidSsml("there must be one <speak> around everything.", at)
        if len(self._open) >= DEEPEST:
            raise InvalidSsml(f"more than {DEEPEST} elements are within each other.", at)
        rate = self._open[-1].rate if self._open else 1.0
        element = _Element(name, attributes, places, rate, at)
        # Nothing within an element that is changed as a whole has an effect of its own.
        if not any(one.is_replaced or one.said is not None for one in self._open):
            self._enter(element)
        self._open.append(element)

    def _enter(self, element: _Element) -> None:
        match element.name:
            case "break":
                seconds = _break_seconds(element)
                if seconds:
                    self._parts.append(self._tags.pause(seconds, f"of {seconds:g} s"))
            case "p" | "s":
                self._boundary(element.name, element.at)
            case "sub":
                element.is_replaced = True
                alias = _required(element, "alias")
                self.characters += self._say(alias, element.places["alias"])
            case "say-as":
                _required(element, "interpret-as")
                element.said = []
            case "prosody":
                self._change_rate(element)

    def _boundary(self, name: str, at: int) -> None:
        """End a line, or a paragraph, for the splitter of sentences; it is not metered."""
        self._parts.append(Text("\n\n" if name == "p" else "\n", at))

    def _change_rate(self, element: _Element) -> None:
        factor = _factor(element.attributes.get("rate", "default").strip(), element.at)
        changed = max(SLOWEST, min(FASTEST, element.rate * factor))
        if changed != element.rate:
            element.rate = changed
            self._parts.append(Rate(changed))

    def _close(self, name: str, at: int) -> None:
        if not self._open or self._open[-1].name != name:
            raise InvalidSsml("this tag closes no element that is open there.", at)
        element = self._open.pop()
        if element.said is not None:
            kind, form = (element.attributes.get(one, "") for one in ("interpret-as", "format"))
            words = say_as.words(html.unescape("".join(element.said)), kind, form)
            start, end = element.span
            self._say(html.escape(words, quote=False), start, end - start)
        elif name in ("p", "s") and not any(one.said is not None for one in self._open):
            self._boundary(name, at)
        before = self._open[-1].rate if self._open else 1.0
        if element.rate != before:
            self._parts.append(Rate(before))


def _required(element: _Element, attribute: str) -> str:
    if attribute not in element.attributes:
        raise InvalidSsml(f"<{element.name}> needs the attribute '{attribute}'.", element.at)
    return element.attributes[attribute]


def _break_seconds(element: _Element) -> float:
    attributes, at = element.attributes, element.at
    if "time" in attributes:
        time = _TIME.fullmatch(attributes["time"].strip())
        if time is None:
            raise InvalidSsml("'time' of <break> must be like 500ms or 1.5s.", at)
        return float(time["amount"]) / (1000 if time["unit"] == "ms" else 1)
    strength = attributes.get("strength", "medium").strip()
    if strength not in _STRENGTHS:
        raise InvalidSsml(f"'strength' of <break> must be one of {', '.join(_STRENGTHS)}.", at)
    return _STRENGTHS[strength]


def _factor(rate: str, at: int) -> float:
    """The factor on the voice's pace: ``slow``, ``120%``, ``+20%``, ``1.2``."""
    if rate in _RATES:
        return _RATES[rate]
    factor = _FACTOR.fullmatch(rate)
    if factor is None or (factor["sign"] and not factor["percent"]):
        raise InvalidSsml(
            f"'rate' of <prosody> must be a percentage, a number or one of {', '.join(_RATES)}.", at
        )
    number = float(factor["number"])
    if factor["sign"]:
        return 1 + number / 100 if factor["sign"] == "+" else max(0.0, 1 - number / 100)
    return number / 100 if factor["percent"] else number
