"""The languages that voices speak."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """Language of a voice, as the catalog writes it (docs/explain/speech-text.md)."""

    ENGLISH = "en"
    HINDI = "hi"


HINDI_LETTERS = r"\u0900-\u0963\u0966-\u097f"
"""What a Hindi word is written with, vowel signs among it, for a class of characters in an
expression: all of Devanagari but the full stops."""
WORD_END = rf"(?![\w{HINDI_LETTERS}])"
"""The end of a word of either language: ``\\w`` and ``\\b`` see none of the vowel signs."""
