"""Cells of the admin's lists: badges, and ids that leave room for what matters."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.utils.html import format_html
from django.utils.safestring import SafeString

_SHORT: Final = 8
"""Characters of an id that tell the rows of a page apart."""


class Tone(StrEnum):
    """How a badge looks; its text says the same in words."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


def badge(text: object, tone: Tone) -> SafeString:
    """``text`` in a frame whose colour says how urgent it is."""
    return format_html('<span class="svc-badge svc-{}">{}</span>', tone.value, text)


def short_id(identifier: object) -> SafeString:
    """The end of an id, which is random in ids that begin with their time; whole in its title."""
    text = str(identifier)
    return format_html('<code title="{}">…{}</code>', text, text[-_SHORT:])
