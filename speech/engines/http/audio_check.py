"""Checks a speech server's answer: it must hold sound, and not more than the text can last."""

from __future__ import annotations

from typing import Final

import numpy as np

from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH, SHORTEST_SECONDS, samples, silence
from speech.engines import EngineProtocolError
from speech.engines.http.audio_files import LONGEST_SECONDS
from speech.engines.http.audio_readers import LARGEST_BODY, Delivery, reader_for

_BASE_SECONDS, _SECONDS_PER_CHARACTER = 20.0, 1.0
_SILENT_PEAK: Final = 2


class AudioCheck:
    """Decodes one answer to PCM and rejects sound that cannot be the text.

    No PCM is returned before it is audible, so that silence in place of words fails before anything
    was sent. All methods raise ``EngineProtocolError``, or ``EngineError`` for an error that the
    server itself reports.
    """

    def __init__(self, delivery: Delivery, text: str, rate: float = 1.0) -> None:
        """``rate`` is the requested factor on the voice's speed: slow speech may be longer."""
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
        """Whether the answer has marked its end; the rest need not be read."""
        return self._reader.complete

    def feed(self, read: bytes) -> bytes:
        """Decode ``read`` and return the PCM that is ready; it may be empty."""
        self._received += len(read)
        if self._received > LARGEST_BODY:
            raise EngineProtocolError("The answer is too large.")
        return self._passed(self._reader.feed(read))

    def finish(self) -> bytes:
        """Return the rest. Compressed files are decoded here, which blocks."""
        if not self._received:
            raise EngineProtocolError("The answer is empty.")
        rest = self._passed(self._reader.finish())
        if self._sounded:
            return rest
        if self._worded:
            raise EngineProtocolError("The answer is silent.")
        return bytes(self._held) or silence(SHORTEST_SECONDS)

    def _passed(self, pcm: bytes) -> bytes:
        self._room -= len(pcm)
        if self._room < 0:
            raise EngineProtocolError("The sound is too long for the text.")
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
