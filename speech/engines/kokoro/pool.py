"""The processes that run Kokoro-82M, and their orders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.sharing.processors import Niceness
from speech.audio.pcm import SAMPLE_RATE
from speech.engines.kokoro import files
from speech.engines.worker_frames import NICENESS
from speech.engines.worker_pool import Program, Worker, WorkerPool

_ORDER_SECONDS: Final = 60.0
_MOST_BYTES: Final = 2 * 180 * SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class Order:
    """A run to speak: the model's tokens, and the voices whose styles are mixed, with their shares.

    ``pitch`` and ``gain`` are factors on pitch and loudness. Then the sound is filtered with gains of
    ``eq_db`` decibels at ``eq_hz``, unless these are empty. With ``marks`` the frames that each
    token lasts come ahead of the sound.
    """

    tokens: list[int]
    styles: tuple[tuple[str, float], ...]
    speed: float = 1.0
    pitch: float = 1.0
    gain: float = 1.0
    eq_hz: tuple[float, ...] = ()
    eq_db: tuple[float, ...] = ()
    marks: bool = False


class KokoroPool(WorkerPool[Order]):
    """Workers that speak, each with ``threads`` threads.

    Workers ``in_background`` have the lowest priority, and ten times as long for an order.
    """

    name = "kokoro"

    def __init__(
        self,
        directory: Path,
        threads: int,
        *,
        size: int,
        most_waiting: int = 64,
        wait_seconds: float = 30.0,
        in_background: bool = False,
    ) -> None:
        order_seconds = 10 * _ORDER_SECONDS if in_background else _ORDER_SECONDS
        super().__init__(
            size=size,
            most_waiting=most_waiting,
            wait_seconds=wait_seconds,
            order_seconds=order_seconds,
        )
        self._program = Program(
            name=self.name,
            module="speech.engines.kokoro.worker",
            arguments=(
                str(directory / files.MODEL),
                str(files.styles_directory(directory)),
                str(threads),
                str(int(Niceness.BULK_WORK if in_background else NICENESS)),
            ),
            ready=str(SAMPLE_RATE).encode(),
            start_seconds=order_seconds,
            most_bytes=_MOST_BYTES,
        )

    def make_worker(self, directory: Path, number: int) -> Worker:
        return Worker(self._program)
