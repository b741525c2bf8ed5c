"""The espeak-ng workers, their orders, and the data directory of each worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import espeakng_loader
import msgspec

from core.sharing.processors import Niceness
from speech.audio.pcm import SAMPLE_RATE, SAMPLE_WIDTH
from speech.engines import EngineError
from speech.engines.sanitize import plain_words, sanitized
from speech.engines.worker_frames import NICENESS, split_marks
from speech.engines.worker_pool import Program, Worker, WorkerPool

_LONGEST_DATA_PATH = 140
_MOST_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Order:
    """A text to speak; names and ranges are espeak-ng's (speak_lib.h).

    ``stretch`` is the factor by which the sound is lengthened afterwards, its pitch kept. Then it
    is filtered with gains of ``eq_db`` decibels at ``eq_hz``, unless these are empty. With ``marks``
    the times of the words come ahead of the sound. ``sounds``: words of the text, the words for which
    they stand, and the phonemes of these, by their names in espeak-ng.
    """

    voice: str
    text: str
    rate: int = 175
    pitch: int = 50
    range: int = 50
    volume: int = 100
    stretch: float = 1.0
    variant: str | None = None
    eq_hz: tuple[float, ...] = ()
    eq_db: tuple[float, ...] = ()
    marks: bool = False
    sounds: tuple[tuple[str, str, str], ...] = ()

    def plainer(self) -> Order:
        """The order with only words in its text."""
        text = self.text
        for stand_in, word, _ in self.sounds:
            text = text.replace(stand_in, sanitized(word))
        return replace(self, text=plain_words(text), sounds=())


@dataclass(frozen=True, slots=True)
class PhonemeOrder:
    """Texts to convert to phonemes, each on its own."""

    voice: str
    phonemes_of: tuple[str, ...]

    def plainer(self) -> PhonemeOrder:
        """The order with only words in its texts."""
        return replace(self, phonemes_of=tuple(plain_words(text) for text in self.phonemes_of))


_WARMING = (Order(voice="en-us", text="Ready."), Order(voice="hi", text="\u0939\u093e\u0901"))


class EspeakWorker(Worker):
    """A worker with the data directory of its processes."""

    def __init__(self, directory: Path, niceness: int = NICENESS) -> None:
        """Create ``directory`` with links to espeak-ng's files, so that a voice can be added."""
        if len(str(directory)) > _LONGEST_DATA_PATH:
            raise EngineError(
                f"The directory for temporary files has too long a path for espeak-ng: "
                f"{directory}. Set TMPDIR to one of at most 100 characters."
            )
        _lay_over(Path(espeakng_loader.get_data_path()), directory / "espeak-ng-data")
        super().__init__(
            Program(
                name="espeak",
                module="speech.engines.espeak.worker",
                arguments=(espeakng_loader.get_library_path(), str(directory), str(int(niceness))),
                ready=str(SAMPLE_RATE).encode(),
                start_seconds=10.0,
                most_bytes=_MOST_SECONDS * SAMPLE_RATE * SAMPLE_WIDTH,
            )
        )


class EspeakPool(WorkerPool[Order | PhonemeOrder]):
    """Workers that speak, or return phonemes. A text that crashed one is retried as plain words.

    Of several, the first has the event loop's priority and is for short texts while it can be.
    """

    name = "espeak"

    def make_worker(self, directory: Path, number: int) -> Worker:
        if self.size == 1:
            return EspeakWorker(directory)
        return EspeakWorker(directory, Niceness.LONG_WORK if number else 0)

    def retry_order(self, order: Order | PhonemeOrder) -> Order | PhonemeOrder:
        return order.plainer()

    async def start(self) -> None:
        """Start every worker and load its dictionaries before the first order."""
        await self.run_on_all(_WARMING)

    async def phonemes(
        self, voice: str, texts: tuple[str, ...], organization_id: str = ""
    ) -> list[str]:
        """The phonemes of each text, as the worker writes them. Raises as ``run`` does."""
        answer = await self.run(PhonemeOrder(voice, texts), organization_id)
        return msgspec.json.decode(answer, type=list[str])


def marks_of(answered: bytes) -> tuple[str, list[tuple[int, float]], bytes]:
    """The answer to an order with ``marks``: the text that was spoken, the offset in it and the second
    of each reported word, in their order, and the sound."""
    marks, sound = split_marks(answered)
    text, words = msgspec.json.decode(marks, type=tuple[str, list[tuple[int, float]]])
    return text, words, sound


def _lay_over(original: Path, copy: Path) -> None:
    """Link every file of ``original`` into ``copy``, whose ``voices/!v`` is a real directory."""
    copy.mkdir(parents=True)
    for entry in original.iterdir():
        if entry.is_dir() and entry.name in {"voices", "!v"}:
            _lay_over(entry, copy / entry.name)
        else:
            (copy / entry.name).symlink_to(entry)
