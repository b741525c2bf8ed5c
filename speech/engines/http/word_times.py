"""When a speech server spoke each word: what it is asked, and what it answers.

``header``: vLLM-Omni with ``--forced-aligner`` answers ``word_timestamps`` by a header, to 4 KB.
``captions``: Kokoro-FastAPI has a path of its own, which answers with JSON.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from speech.engines import EngineProtocolError, SpokenWord
from speech.text.tags import has_words

HEADER: Final = b"x-word-timestamps"
CAPTIONS_PATH: Final = "/dev/captioned_speech"
CAPTIONS: Final = "captions"
"""The ``word_times`` of a backend with that path, and the form in which that answers."""

FIELDS: Final[dict[str, dict[str, Any]]] = {
    "header": {"word_timestamps": True, "stream": False, "response_format": "wav"},
    CAPTIONS: {"return_timestamps": True, "stream": False, "response_format": "wav"},
}
"""What is sent beside the text, by ``word_times``."""


def form_of(word_times: str) -> str:
    """The form of an answer with times, as ``Delivery.asked``."""
    return CAPTIONS if word_times == CAPTIONS else "file"


_LONGEST_WORD: Final = 100
_MORE_WORDS: Final = 100
_EDGES: Final = " .,;:!?\u2026\u0964\u0965\"'\u201c\u201d\u2018\u2019()[]{}-\u2013\u2014*_"


class _HeaderWord(msgspec.Struct):
    word: str
    start_ms: float
    end_ms: float


class _CaptionWord(msgspec.Struct):
    word: str
    start_time: float
    end_time: float


class _Captions(msgspec.Struct):
    audio: str
    audio_format: str = ""
    timestamps: list[_CaptionWord] | None = None


def header_words(header: str, text: str) -> list[SpokenWord]:
    """The words of ``text`` in the header of vLLM-Omni; none if it is absent or invalid."""
    try:
        found = msgspec.json.decode(header or "[]", type=list[_HeaderWord])
    except (msgspec.MsgspecError, RecursionError):
        return []
    times = ((each.word, each.start_ms / 1000, each.end_ms / 1000) for each in found)
    return _checked(times, text)


def captions(answer: bytes, text: str) -> tuple[bytes, str, list[SpokenWord]]:
    """The sound of an answer of Kokoro-FastAPI, its media type and the words of ``text``.

    Raises ``EngineProtocolError``.
    """
    try:
        found = msgspec.json.decode(answer, type=_Captions)
        sound = binascii.a2b_base64(found.audio, strict_mode=True)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise EngineProtocolError("The answer is no captioned speech.") from None
    times = ((each.word, each.start_time, each.end_time) for each in found.timestamps or [])
    return sound, found.audio_format, _checked(times, text)


def _checked(words: Iterable[tuple[str, float, float]], text: str) -> list[SpokenWord]:
    """Words with a letter or digit, whose times are numbers that never go back; no more than ``text``
    can have, also where its figures are written out."""
    made: list[SpokenWord] = []
    before = 0.0
    for word, start, end in islice(words, 2 * len(text) + _MORE_WORDS):
        if has_words(word) and math.isfinite(start) and math.isfinite(end):
            since = max(before, start)
            before = max(since, end)
            made.append(SpokenWord(word.strip(_EDGES)[:_LONGEST_WORD], since, before))
    return made
