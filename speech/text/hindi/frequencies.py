"""How common words are: the frequency lists of wordfreq.

wordfreq is imported by the first call. It brings along packages whose import takes as long as that
of all the rest of svc, and a gateway that speaks no Hindi needs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping


def english_zipf(word: str) -> float:
    """The Zipf frequency of a lower-case English word, 0 (unknown) to 8."""
    import wordfreq  # noqa: PLC0415  # see above

    return wordfreq.zipf_frequency(word, "en")


def hindi_words() -> Mapping[str, float]:
    """Each Hindi word in Devanagari with the part of all words that it is."""
    import wordfreq  # noqa: PLC0415  # see above

    return wordfreq.get_frequency_dict("hi")
