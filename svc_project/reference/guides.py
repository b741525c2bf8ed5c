"""The guides below /docs/guides/: Markdown of the repository, with this gateway's addresses and names.

In the source an address is that of a gateway on the reader's machine, and the model is one of the
demo catalog, so that the source reads well by itself and the tests can run its examples. On the site
both are placeholders, which each answer replaces (``svc_project.reference.readers``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from posixpath import dirname, join, normpath
from typing import Final

from django.conf import settings
from django.urls import reverse

from svc_project.reference.examples import with_placeholders
from svc_project.reference.markdown import Text, render


@dataclass(frozen=True, slots=True)
class Guide:
    """One guide. ``source`` is its path in the repository, ``playground`` whether one can try it there."""

    name: str
    title: str
    about: str
    source: str
    playground: bool = False


def _guide(name: str, title: str, about: str, *, playground: bool = False) -> Guide:
    return Guide(name, title, about, f"docs/guides/{name}.md", playground)


_ALL: Final = (
    _guide("quick-start", "Quick start", "A key, a first request, and its cost.", playground=True),
    _guide("streaming", "Streaming", "An answer frame by frame, and how it can end."),
    _guide("tools", "Tools", "A whole loop: call, result, answer.", playground=True),
    _guide(
        "structured-output",
        "Structured output",
        "Answers that follow a JSON schema.",
        playground=True,
    ),
    Guide(
        "schema-subset",
        "The schema subset",
        "Which schemas are accepted, keyword by keyword.",
        "docs/api/schema-subset.md",
    ),
    _guide("limits", "Limits and retries", "What is reserved, what a 429 says, when to retry."),
    _guide(
        "usage", "Usage and reconciliation", "Sums, rows, and checking a bill to the last digit."
    ),
    _guide("keys", "Keys", "Scopes, rotation, and a key that leaked."),
    _guide("speech", "Speech", "Text to sound over HTTP and a WebSocket."),
    _guide("clones", "Cloned voices", "A private voice from some seconds of speech."),
    _guide("from-openai", "Coming from OpenAI", "Two lines to change, and what differs."),
    _guide("from-litellm", "Coming from LiteLLM", "As a library, a proxy in front, or replaced."),
    Guide(
        "sdk-defaults",
        "What SDKs send by default",
        "Schemas, addresses and fields of common clients, and what happens here.",
        "docs/connect-defaults.md",
    ),
)
GUIDES: Final = {guide.name: guide for guide in _ALL}
_BY_SOURCE: Final = {guide.source: guide.name for guide in _ALL}
_PAGES: Final = {
    "docs/api/inference.md#errors": "docs-errors",
    "docs/api/inference.md": "docs-inference",
    "docs/api/speech.md": "docs-speech",
    "docs/console.md": "console",
}
"""Routes that serve, in another form, what a page of the repository describes."""
_COVERED: Final = {
    "docs/connect.md": "quick-start",
    "docs/api/usage.md": "usage",
    "docs/api/usage-export.md": "usage",
    "docs/explain/clones.md": "clones",
    "docs/explain/keys.md": "keys",
    "docs/explain/limits.md": "limits",
    "docs/explain/metering.md": "usage",
    "docs/explain/speech-text.md": "speech",
}
"""Guides that say what callers need of a page that is not served."""


@lru_cache(maxsize=len(GUIDES))
def text_of(name: str) -> Text:
    """The rendered guide ``name``. Raises ``KeyError`` where there is none."""
    guide = GUIDES[name]
    source = (settings.BASE_DIR / guide.source).read_text(encoding="utf-8")
    return render(with_placeholders(source), lambda target: place_of(guide.source, target))


def place_of(source: str, target: str) -> str | None:
    """Where the link ``target`` in the file ``source`` leads on the site; None for what is not served."""
    path, _, anchor = target.partition("#")
    path = normpath(join(dirname(source), path))
    if path in _BY_SOURCE:
        place = reverse("docs-guide", args=[_BY_SOURCE[path]])
        return f"{place}#{anchor}" if anchor else place
    if path in _COVERED:
        return reverse("docs-guide", args=[_COVERED[path]])
    route = _PAGES.get(f"{path}#{anchor}") or _PAGES.get(path)
    return None if route is None else reverse(route)
