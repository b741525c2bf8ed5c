"""Names of voice clones: which names are valid, and when two are the same.

Each database folds case in its own way (SQLite's ``NOCASE`` knows ASCII only, PostgreSQL's
``lower`` follows a locale), so the folding is done here and the unique constraint is on the key.
"""

from __future__ import annotations

import unicodedata

MAX_NAME_LENGTH = 40
"""Unicode code points (speech contract, Limits)."""

MAX_NAME_KEY_LENGTH = MAX_NAME_LENGTH * 18
"""Code points: one character becomes at most 18 (U+FDFA under NFKC)."""

_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls; bidirectional, zero-width and other format characters; surrogates; line separators."""

_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Invisible characters whose category is letter, mark or symbol."""

_VARIATION_SELECTORS = dict.fromkeys((*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))


class UnusableName(Exception):
    """The text cannot be a clone's name; ``reason`` is a sentence for the client."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def clone_name(text: str) -> str:
    """The display name in ``text``, without the whitespace around it.

    Raises ``UnusableName`` unless it has 1 to 40 code points and none of them is a control
    character, changes the writing direction, or is invisible.
    """
    name = text.strip()
    if len(name) > MAX_NAME_LENGTH:
        raise UnusableName(f"it has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed.")
    if not name_key(name):
        raise UnusableName("it is blank; give the voice a name.")
    for character in name:
        if unicodedata.category(character) in _FORBIDDEN_CATEGORIES or character in _BLANKS:
            raise UnusableName(
                f"it holds U+{ord(character):04X}, a control or invisible character; remove it."
            )
    return name


def name_key(name: str) -> str:
    """The key by which names are the same: NFKC, full case folding, NFKC.

    Variation selectors are removed: they choose between two glyphs of one character. The key of a
    name from ``clone_name`` has at most ``MAX_NAME_KEY_LENGTH`` code points.
    """
    plain = name.translate(_VARIATION_SELECTORS)
    folded = unicodedata.normalize("NFKC", plain).casefold()
    return unicodedata.normalize("NFKC", folded)
