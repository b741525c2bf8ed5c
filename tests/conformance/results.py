"""What a suite found, and how it compares with what is listed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How one case of a suite ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """One case of a suite; ``detail`` says what went wrong, or why the suite left it out."""

    case: str
    outcome: Outcome
    detail: str = ""


@dataclass(frozen=True)
class Expectation:
    """Cases that do not pass, and the section of the contract that says why.

    ``cases`` is a pattern in which ``*`` stands for any text.
    """

    suite: str
    cases: str
    outcome: Outcome
    section: str
    reason: str

    def covers(self, case: str) -> bool:
        """Say whether the pattern fits the whole name of ``case``."""
        parts = (re.escape(part) for part in self.cases.split("*"))
        return re.fullmatch(".*".join(parts), case, re.DOTALL) is not None


@dataclass(frozen=True)
class Verdict:
    """The comparison of one suite with its expectations."""

    passed: int
    expected: tuple[tuple[Expectation, int], ...]
    """Each expectation that came true, with the number of its cases."""
    unexpected: tuple[str, ...]
    """One line for each result that differs from what is listed."""

    @property
    def cases(self) -> int:
        """Count every case that has a result."""
        return self.passed + sum(count for _, count in self.expected) + self.differing

    differing: int = 0
    """The number of cases among ``unexpected``; a pattern without a case is none."""


def compare(results: Sequence[Result], expectations: Iterable[Expectation]) -> Verdict:
    """Compare the results of one suite with the expectations of that suite.

    A case that is listed and passes differs too, and so does a pattern that fits no case, so that
    the list stays true.
    """
    listed = list(expectations)
    counts = dict.fromkeys(range(len(listed)), 0)
    passed = differing = 0
    unexpected: list[str] = []
    for result in results:
        covering = [number for number, each in enumerate(listed) if each.covers(result.case)]
        for number in covering:
            counts[number] += 1
        wanted = {listed[number].outcome for number in covering} or {Outcome.PASSED}
        if wanted != {result.outcome}:
            differing += 1
            for number in covering:
                counts[number] -= 1
            unexpected.append(_line(result, bool(covering)))
        elif result.outcome is Outcome.PASSED:
            passed += 1
        else:
            for number in covering[1:]:
                counts[number] -= 1
    met = [(each, counts[number]) for number, each in enumerate(listed) if counts[number]]
    fitting = [each for each in listed if any(each.covers(result.case) for result in results)]
    unexpected += [
        f"{each.cases}: is listed, and no case has this name"
        for each in listed
        if each not in fitting
    ]
    return Verdict(passed, tuple(met), tuple(unexpected), differing)


def _line(result: Result, listed: bool) -> str:
    detail = " ".join(result.detail.split())[:300]
    told = "is listed, and " if listed else ""
    return f"{result.case}: {told}{result.outcome.value}{': ' if detail else ''}{detail}"
