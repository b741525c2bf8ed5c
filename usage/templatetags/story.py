"""What happened to one chat request, as a bar: its wait for a slot, its first token, its end."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from usage.models import UsageRow

register = template.Library()


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
