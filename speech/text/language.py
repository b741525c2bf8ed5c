"""The languages that voices speak."""

from __future__ import annotations

from enum import StrEnum


class Language(StrEnum):
    """Language of a voice, as the catalog writes it (docs/explain/speech-text.md)."""

    ENGLISH = "en"
    HINDI = "hi"
