"""Markdown of the repository as HTML: headings with anchors, code that can be copied, no raw HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from django.utils.html import escape

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Links = Callable[[str], str | None]
"""Returns where a link of the source leads on the site; None for what is not served."""

_NOT_IN_ANCHORS: Final = re.compile(r"[^\w\- ]")
_ELSEWHERE: Final = re.compile(r"https?:|#")
_SHOWN_TYPES: Final = frozenset({"text", "code_inline", "softbreak"})
_DATA: Final = frozenset({"json", "http"})
"""Languages of what came over the wire, whose long lines are shown whole."""
_FRAME: Final = "data: "
"""A stream begins so; each of its frames is numbered."""
_LANGUAGES: Final = {
    "sh": "Shell",
    "python": "Python",
    "js": "JavaScript",
    "json": "JSON",
    "http": "HTTP",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text below it, up to the next heading. ``anchor`` is empty for the title."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A rendered document. ``html`` begins below its title, which is the first of ``sections``."""

    title: str
    html: str
    sections: tuple[Section, ...]


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it, so that links work there too."""
    return _NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-")


def render(source: str, links: Links) -> Text:
    """Render ``source``, whose first heading is its title."""
    parser = _parser()
    tokens = parser.parse(source)
    for token in tokens:
        if token.children:
            token.children = list(_led(token.children, links))
    _label_cells(tokens)
    sections = _sections(tokens)
    below = tokens[3:] if tokens[0].type == "heading_open" else tokens
    html = parser.renderer.render(below, parser.options, {})
    return Text(sections[0].title, html, tuple(sections))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # It takes a third of a second to import, and most processes render nothing.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _code)
    parser.add_render_rule("code_block", _code)
    parser.add_render_rule("heading_close", _end_of_heading)
    return parser


def _led(children: Sequence[Token], links: Links) -> Iterator[Token]:
    """Let links lead to pages of the site; of a link that leads to none only its text stays."""
    is_left_out = False
    for child in children:
        if child.type == "link_open":
            target = str(child.attrGet("href"))
            place = target if _ELSEWHERE.match(target) else links(target)
            is_left_out = place is None
            child.attrSet("href", place or "")
        if not (is_left_out and child.type in ("link_open", "link_close")):
            yield child


def _label_cells(tokens: Sequence[Token]) -> None:
    """Give each cell of a table the head of its column, which narrow windows show beside it."""
    heads: list[str] = []
    column = 0
    for at, token in enumerate(tokens):
        if token.type == "table_open":
            heads = []
        elif token.type == "th_open":
            heads.append(_text_of(tokens[at + 1]))
        elif token.type == "tr_open":
            column = 0
        elif token.type == "td_open":
            if column and heads[column]:
                token.attrSet("data-label", heads[column])
            column += 1


def _sections(tokens: Sequence[Token]) -> list[Section]:
    """Collect the headings with their text, and give each its anchor."""
    found: list[Section] = []
    texts: list[str] = []
    anchors: set[str] = set()
    heading: Token | None = None
    for token in tokens:
        if token.type == "heading_open":
            heading = token
        elif heading is not None:
            title = _text_of(token)
            anchor = anchor_of(title) if found else ""
            if anchor in anchors:
                raise ValueError(f"two headings are {title!r}")
            anchors.add(anchor)
            heading.attrSet("id", anchor)
            if found:
                found[-1] = _with(found[-1], texts)
            texts = []
            found.append(Section(anchor, title, int(heading.tag[1:]), ""))
            heading = None
        elif text := _text_of(token):
            texts.append(text)
    found[-1] = _with(found[-1], texts)
    return found


def _with(section: Section, texts: Sequence[str]) -> Section:
    return Section(section.anchor, section.title, section.level, " ".join(texts))


def _text_of(token: Token) -> str:
    """What a reader sees of running text, without its marks; code blocks have none."""
    return "".join(
        " " if child.type == "softbreak" else child.content
        for child in token.children or ()
        if child.type in _SHOWN_TYPES
    )


def _end_of_heading(_renderer: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """A link to the heading itself, behind it."""
    opened, title = tokens[at - 2], escape(_text_of(tokens[at - 1]))
    link = f'<a class="self" href="#{opened.attrGet("id")}" aria-label="Link to {title}">#</a>'
    return f"{link}</{opened.tag}>\n"


def _code(_renderer: Any, tokens: Sequence[Token], at: int, *_: Any) -> str:
    """A block of code with its button, in the console's form."""
    token = tokens[at]
    language = token.info.partition(" ")[0]
    name = _LANGUAGES.get(language, "Code")
    kind = ' class="wraps"' if language in _DATA else ""
    code: str = escape(token.content.rstrip())
    if code.startswith(_FRAME):
        kind = ' class="wraps frames"'
        frames = code.split("\n\n")
        code = "".join(f'<span class="frame">{frame}\n\n</span>' for frame in frames)
    return (
        f'<div class="code"><pre{kind} tabindex="0" aria-label="{name}">{code}</pre>'
        '<button type="button" class="quiet" data-copies="" hidden>Copy</button></div>\n'
    )
