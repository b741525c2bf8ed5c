"""The phrases that were spoken lately, with their words, in this worker's memory.

An agent says the same sentences again and again, and Kokoro-82M takes half a second for each; it
makes the same samples each time. A phrase is its organization's alone.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from core.monitoring import metrics
from speech.engines import SpokenWord, Utterance

MOST_BYTES: Final = 64 << 20
"""The most that is held: 23 minutes of sound."""

_OWN_SHARE: Final = 2
"""One organization holds at most this part of it, so that others keep theirs."""

_ENTRY_BYTES: Final = 1024
_PIECE_BYTES: Final = 200
"""What a phrase, and each of its pieces, takes beside its sound and text."""

lookups = metrics.Counter(
    "svc_speech_phrases",
    "Utterances of the neural engine, by whether their sound was in memory (hit) or made (miss).",
    ("result",),
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """What makes an utterance sound as it does, and whose it is.

    ``voice`` is the model's own, so a voice of the catalog that is given another one has other phrases.
    """

    organization_id: str
    voice: str
    rate: float
    text: str
    is_interactive: bool
    sounds: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, utterance: Utterance) -> Phrase:
        """The phrase that ``utterance`` is."""
        return cls(
            utterance.organization_id,
            utterance.engine_voice,
            utterance.rate,
            utterance.text,
            utterance.is_interactive,
            tuple((one.stand_in, one.word, one.ipa) for one in utterance.stand_ins),
        )


Spoken = tuple[bytes | SpokenWord, ...]


@dataclass(frozen=True, slots=True)
class _Held:
    pieces: Spoken
    is_timed: bool
    size: int


class Phrases:
    """Holds at most ``most_bytes`` of phrases; that which was not asked for the longest goes first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._held: OrderedDict[Phrase, _Held] = OrderedDict()
        self._size: Counter[str] = Counter()
        """By organization."""

    @property
    def size(self) -> int:
        """The bytes that are held."""
        return self._size.total()

    def find(self, phrase: Phrase, *, is_timed: bool) -> Spoken | None:
        """The pieces of ``phrase``, with its words if ``is_timed``; None if they are not held."""
        held = self._held.get(phrase)
        if held is None or (is_timed and not held.is_timed):
            lookups.add("miss")
            return None
        lookups.add("hit")
        self._held.move_to_end(phrase)
        return held.pieces

    def keep(self, phrase: Phrase, pieces: Spoken, *, is_timed: bool) -> None:
        """Hold all ``pieces`` of ``phrase``."""
        sound = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
        size = sound + _ENTRY_BYTES + 4 * len(phrase.text) + _PIECE_BYTES * len(pieces)
        self._drop(phrase)
        if size > self._most // _OWN_SHARE:
            return
        own = phrase.organization_id
        while self._size[own] + size > self._most // _OWN_SHARE:
            self._drop(next(each for each in self._held if each.organization_id == own))
        while self.size + size > self._most:
            self._drop(next(iter(self._held)))
        self._held[phrase] = _Held(pieces, is_timed, size)
        self._size[own] += size

    def _drop(self, phrase: Phrase) -> None:
        held = self._held.pop(phrase, None)
        if held is not None:
            self._size[phrase.organization_id] -= held.size
            if not self._size[phrase.organization_id]:
                del self._size[phrase.organization_id]
