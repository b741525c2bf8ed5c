"""The locale of a voice: the order of dates with slashes, and the words for large numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from speech.text.language import Language


class Region(StrEnum):
    """The region whose conventions are followed."""

    US = "US"
    GB = "GB"
    IN = "IN"


@dataclass(frozen=True, slots=True)
class Locale:
    """A language as it is spoken in a region."""

    language: Language
    region: Region

    @property
    def is_hindi(self) -> bool:
        return self.language is Language.HINDI

    @property
    def day_first(self) -> bool:
        """Whether 7/4 is the seventh of April."""
        return self.is_hindi or self.region is not Region.US

    @property
    def is_indian(self) -> bool:
        """Whether a figure without separators counts in lakh and crore."""
        return self.is_hindi or self.region is Region.IN


_TAG = re.compile(r"(?<![a-z])en[-_]([a-z]{2}|029)(?![a-z0-9])", re.IGNORECASE)
_REGIONS = {"US": Region.US, "IN": Region.IN}
_KOKORO_BRITISH = re.compile(r"(?<![a-z])b[fm]_[a-z]")


def region_of(engine_voice: str, language: Language) -> Region:
    """The region by the language tag in a voice's name (``en-us+f3``, ``en_GB-alba``).

    The espeak-ng voice ``en`` is British. English that is neither American nor Indian follows
    British conventions. Kokoro's names have a letter for it (``bf_emma``). A name without a region
    counts as American; Hindi is Indian.
    """
    if language is Language.HINDI:
        return Region.IN
    if engine_voice.partition("+")[0] == "en" or _KOKORO_BRITISH.search(engine_voice):
        return Region.GB
    tag = _TAG.search(engine_voice)
    return _REGIONS.get(tag[1].upper(), Region.GB) if tag else Region.US
