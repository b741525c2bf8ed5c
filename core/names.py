"""What names that people give are made of, so that none looks like another one, or like a line of its own."""

from __future__ import annotations

import re
from typing import Final

from django.core.exceptions import ValidationError
from django.db import models

_MISLEADING: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that move a terminal's cursor, begin a line, or turn the direction of text."""


def is_new(name: str, row: models.Model, field: str = "name") -> bool:
    """Whether ``name`` is not what is stored of ``row``: rules hold for new names alone."""
    stored = type(row)._default_manager.filter(pk=row.pk).values_list(field, flat=True)
    return stored.first() != name


def check_name(name: str, row: models.Model, field: str = "name") -> None:
    """Refuse ``name`` as a new one of ``row`` where it has control characters, or blanks around it.

    Raises ``ValidationError`` for ``field``.
    """
    if (_MISLEADING.search(name) or name != name.strip()) and is_new(name, row, field):
        raise ValidationError(
            {field: "Leave out control characters, and blanks at the beginning and end."}
        )


def cleaned(name: str) -> str:
    """Return ``name``, which may be older than the rule, without what ``check_name`` refuses."""
    return _MISLEADING.sub("", name).strip()
