"""What happened to one chat request: a bar of its wait, its first token and its end; its speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from usage.models import UsageRow

register = template.Library()

_LEAST_MS: Final = 50
"""Milliseconds between first token and end below which no speed is shown: the answer came at once."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the time of a request; ``begin`` and ``share`` are percent of the whole."""

    name: str
    words: str
    milliseconds: int
    begin: float
    share: float


def phases(row: UsageRow) -> list[Phase]:
    """The parts of the request's time that the row knows, in order; none is longer than what is left."""
    first, rest = row.time_to_first_token_ms, row.total_duration_ms
    queued = min(row.queue_ms or 0, rest)
    before = min(max(first - queued, 0), rest - queued)
    parts = [
        ("queue", "waited for a slot", queued),
        ("first", "until the first token", before),
        ("rest", "until the end", rest - queued - before),
    ]
    found, begin = [], 0.0
    for name, words, milliseconds in parts:
        share = 100 * milliseconds / rest if rest else 0.0
        if milliseconds:
            found.append(Phase(name, words, milliseconds, begin, share))
        begin += share
    return found


@register.simple_tag
def request_story(row: UsageRow) -> SafeString:
    """The bar of ``row``, and its phases in words."""
    return render_to_string("_story.html", {"row": row, "phases": phases(row)})


@register.filter
def speed(row: UsageRow) -> str:
    """``41.7 tokens/s`` after the first token; a dash where that time is too short to say something."""
    first, tokens = row.time_to_first_token_ms, row.backend_reported_output_tokens
    if first is None or tokens < 2 or row.total_duration_ms - first < _LEAST_MS:
        return "–"  # noqa: RUF001
    per_second = 1000 * (tokens - 1) / (row.total_duration_ms - first)
    return f"{per_second:,.{0 if per_second >= 100 else 1}f} tokens/s"
