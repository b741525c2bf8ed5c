"""Cells and filters of the admin's lists: badges, numbers, and ids that leave room for what matters."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin.filters import FieldListFilter
from django.utils.html import format_html
from django.utils.safestring import SafeString

NOTHING: Final = "\N{EN DASH}"
"""A cell without a value, as in the console's tables."""
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


def number_column(field: str, label: str, *, empty: str = NOTHING) -> Callable[[Any, Any], str]:
    """A column of the numbers in ``field`` with separators, which sorts by it; ``empty`` for None."""

    @admin.display(description=label, ordering=field)
    def shown(_: Any, row: Any) -> str:
        number = getattr(row, field)
        return empty if number is None else f"{number:,}"

    return shown


def titled(base: type[FieldListFilter], title: str) -> type[FieldListFilter]:
    """The filter ``base`` under ``title`` where the name of its field says little."""

    class Titled(base):  # type: ignore[valid-type, misc]  # a class made from an argument
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.title = title

    return Titled
