"""The last look at what a speech server said: is it sound at all, and no more than can be?"""

from __future__ import annotations

from typing import Final

import numpy as np

from speech.audio import SAMPLE_RATE, SAMPLE_WIDTH, samples, silence
from speech.engines import EngineProtocolError
from speech.engines.delivered import LARGEST_BODY, Delivery, reader_for
from speech.engines.delivered_files import LONGEST_SECONDS

SHORTEST_SECONDS: Final = 0.02
"""Less is no word; also the silence that stands for text without words."""

_BASE_SECONDS, _SECONDS_PER_CHARACTER = 20.0, 1.0
_SILENT_PEAK: Final = 2


class Hearing:
    """One answer's bytes in, PCM out; refuses what cannot be the text.

    Nothing is given out before there is something to hear, so that silence in place of words fails
    while the failure can still be told. All of it raises ``EngineProtocolError``, or ``EngineError``
    for an error that the server itself reports.
    """

    def __init__(self, delivery: Delivery, text: str, rate: float = 1.0) -> None:
        """``rate`` is the factor on the voice's speed that was asked for: slow speech may be longer."""
        self._reader = reader_for(delivery)
        self._worded = any(character.isalnum() for character in text)
        longest = (_BASE_SECONDS + _SECONDS_PER_CHARACTER * len(text)) / min(1.0, rate)
        self._room = round(min(LONGEST_SECONDS, longest) * SAMPLE_RATE) * SAMPLE_WIDTH
        self._received = 0
        self._held = bytearray()
        self._peak = 0
        self._sounded = False

    @property
    def complete(self) -> bool:
        """Whether the answer has said that it is over."""
        return self._reader.complete

    def feed(self, read: bytes) -> bytes:
        """The PCM that can be given out after ``read``; it may be empty."""
        self._received += len(read)
        if self._received > LARGEST_BODY:
            raise EngineProtocolError("The answer is too large.")
        return self._passed(self._reader.feed(read))

    def finish(self) -> bytes:
        """The rest; takes a while for compressed files."""
        if not self._received:
            raise EngineProtocolError("The answer is empty.")
        rest = self._passed(self._reader.finish())
        if self._sounded:
            return rest
        if self._worded:
            raise EngineProtocolError("The answer holds no sound.")
        return bytes(self._held) or silence(SHORTEST_SECONDS)

    def _passed(self, pcm: bytes) -> bytes:
        self._room -= len(pcm)
        if self._room < 0:
            raise EngineProtocolError("The sound is far longer than the text can be.")
        if self._sounded or not pcm:
            return pcm
        self._held += pcm
        self._peak = max(self._peak, int(np.abs(samples(pcm).astype(np.int32)).max()))
        enough = len(self._held) >= SHORTEST_SECONDS * SAMPLE_RATE * SAMPLE_WIDTH
        if self._peak <= _SILENT_PEAK or not enough:
            return b""
        self._sounded = True
        ready = bytes(self._held)
        self._held.clear()
        return ready
