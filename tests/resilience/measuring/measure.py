"""Runs attacks and measures the victim's requests meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.resilience.measuring.processes import Taken, Watch
from tests.resilience.place import Place
from tests.resilience.programs import AttackerProgram, VictimProgram
from tests.resilience.victim import PROBES, Kind, Sample


@dataclass(frozen=True)
class Figures:
    """The victim's samples of some time."""

    samples: Sequence[Sample]

    def _seconds(self, kind: Kind) -> list[float]:
        return sorted(sample.seconds for sample in self.samples if sample.kind is kind)

    def has(self, kind: Kind) -> bool:
        """Whether there is a sample of ``kind``."""
        return any(sample.kind is kind for sample in self.samples)

    def p50(self, kind: Kind) -> float:
        """In seconds."""
        return median(self._seconds(kind))

    def p99(self, kind: Kind) -> float:
        """In seconds; the longest of fewer than a hundred requests."""
        seconds = self._seconds(kind)
        return seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)]

    def longest(self, kind: Kind) -> float:
        """In seconds."""
        return self._seconds(kind)[-1]

    @property
    def errors(self) -> list[str]:
        """The errors, those of probes included."""
        return [f"{sample.kind}: {sample.error}" for sample in self.samples if sample.error]


@dataclass(frozen=True)
class Attack:
    """The attackers ``names``, at once."""

    names: tuple[str, ...]
    before: Figures
    whole: Figures
    """From the start of the first attacker on."""
    during: Figures
    """While all of them attacked."""
    taken: Taken
    answers: dict[str, dict[str, int]]
    """The answers to each attacker."""

    @property
    def longest_probe(self) -> float:
        """In seconds."""
        return max(self.whole.longest(kind) for kind in PROBES)


def quiet(victim: VictimProgram, seconds: float) -> Figures:
    """Measure the victim without an attack."""
    victim.wait_for(Kind, time.monotonic())
    began = time.monotonic()
    time.sleep(seconds)
    return Figures(victim.between(began, time.monotonic()))


def attack(
    names: Iterable[str],
    target: Path,
    victim: VictimProgram,
    before: Figures,
    place: Place,
    seconds: float,
    *,
    idle: bool = False,
) -> Attack:
    """Run the attackers for ``seconds`` after each got its first answer.

    With ``idle`` they get only processor time that nothing else wants. Waits for the requests that
    the victim began meanwhile.
    """
    names = tuple(names)
    watched = Watch(place.workers, place.pages, place.database_connections)
    with watched as watch, ExitStack() as stack:
        began = time.monotonic()
        programs = [stack.enter_context(AttackerProgram(name, target, idle=idle)) for name in names]
        for program in programs:
            program.wait_until_begun()
        all_begun = time.monotonic()
        time.sleep(seconds)
        whole = Figures(victim.between(began, time.monotonic()))
        during = Figures([sample for sample in whole.samples if sample.began >= all_begun])
        for program in programs:
            program.begin_end()
        answers = {name: program.end() for name, program in zip(names, programs, strict=True)}
    return Attack(names, before, whole, during, watch.taken, answers)
