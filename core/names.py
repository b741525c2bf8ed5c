"""What names that people give are made of, so that none looks like another one, or like a line of its own."""

from __future__ import annotations

import unicodedata
from typing import Final

from django.core.exceptions import ValidationError
from django.db import models

_MISLEADING: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Categories of characters that move a terminal's cursor, begin a line, turn text, or are not seen."""
_SPELLING: Final = frozenset("\u200c\u200d")
"""Characters of these categories with which languages are written (Persian, Hindi), and emoji."""


def is_new(name: str, row: models.Model, field: str = "name") -> bool:
    """Whether ``name`` is not what is stored of ``row``: rules hold for new names alone."""
    stored = type(row)._default_manager.filter(pk=row.pk).values_list(field, flat=True)
    return stored.first() != name


def check_name(name: str, row: models.Model, field: str = "name") -> None:
    """Refuse ``name`` as a new one of ``row`` where a character of it misleads, or blanks are around it.

    Raises ``ValidationError`` for ``field``.
    """
    if cleaned(name) != name and is_new(name, row, field):
        raise ValidationError(
            {
                field: "Leave out control and invisible characters, and blanks at the beginning and end."
            }
        )


def cleaned(name: str) -> str:
    """Return ``name``, which may be older than the rule, without what ``check_name`` refuses."""
    return "".join(filter(_is_plain, name)).strip()


def _is_plain(character: str) -> bool:
    return unicodedata.category(character) not in _MISLEADING or character in _SPELLING
