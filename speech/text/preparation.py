"""Prepares words for an engine: numbers and signs written out, Hindi in Devanagari."""

from __future__ import annotations

from speech.text.language import Language
from speech.text.normalise.characters import cleaned
from speech.text.normalise.locale import Region


def prepared(text: str, language: Language, region: Region, *, only_clean: bool) -> str:
    """``text``, of at least a whole sentence without markup, as an engine gets it.

    With ``only_clean`` numbers and signs stay as they are written.
    """
    from speech.text.normalise.sentence import normalised  # noqa: PLC0415  # see ``load``

    words = cleaned(text) if only_clean else normalised(text, language, region)
    if language is not Language.HINDI:
        return words
    from speech.text.hindi import detect  # noqa: PLC0415  # see ``load``

    return detect.transliterate(words)


def load() -> None:
    """Load what the first text would wait for: the patterns of the rules, and words for numbers.

    It takes a third of a second, for which a server need not wait before it listens.
    """
    from speech.text import dots  # noqa: F401, PLC0415
    from speech.text.hindi import detect  # noqa: F401, PLC0415
    from speech.text.normalise import numbers, sentence  # noqa: F401, PLC0415

    numbers.prepare()
