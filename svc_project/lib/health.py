"""Which model servers are left out for a while because they keep failing.

Passive: the outcomes of real requests are all it goes by, in each process for itself. Nothing here
knows what a backend is; a request draws a ``Trial`` of the ``Condition`` that its backend is in and
says how it went. A server error may follow from what was asked, so one caller's alone eject nothing.
docs/explain/backends.md has the rules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

LONGEST_SECONDS: Final = 60.0
"""The most that one ejection lasts, and the calm after which the next one is short again."""


@dataclass(frozen=True, slots=True)
class Rules:
    """``eject_after`` consecutive failures eject a backend, 0: never; ``seconds`` is how long the
    first time, twice that the second time in a row, and so on up to a minute.

    ``probes``: whether a request tries an ejected backend when its time is over. Without, only
    ``Health.readmit`` brings it back.
    """

    eject_after: int
    seconds: float
    probes: bool = True


class Standing(IntEnum):
    """What a backend is to a request that chooses; lower is better."""

    DUE = 0
    """Ejected, its time is over: this request may be the one that tries it."""
    IN = 1
    SPARE = 2
    """Ejected, but half of the group is out already: for when no other has room."""
    OUT = 3


class Condition:
    """What one process knows of one backend."""

    __slots__ = (
        "ejected",
        "ejections",
        "epoch",
        "failures",
        "probing",
        "returned",
        "sole_caller",
        "streak",
        "total_failures",
        "until",
    )

    def __init__(self) -> None:
        self.ejected = False
        self.failures = 0
        """In a row."""
        self.sole_caller: str | None = ""
        """Whose requests all of these failures answered with a server error; empty while there is
        none, None when there are several callers or a failure of another kind."""
        self.until = 0.0
        """When the ejection is over, on the clock of ``Health``."""
        self.probing = False
        self.epoch = 0
        """Counts ejections and returns: what began before the last one says nothing any more."""
        self.streak = 0
        """Ejections in a row, without a minute of calm between them."""
        self.returned = float("-inf")
        self.ejections = 0
        self.total_failures = 0


class Trial:
    """One exchange's say about a backend; the first verdict counts, later ones do nothing."""

    __slots__ = ("_condition", "_epoch", "_health", "is_probe")

    def __init__(self, health: Health, condition: Condition, is_probe: bool) -> None:
        self._health = health
        self._condition: Condition | None = condition
        self._epoch = condition.epoch
        self.is_probe = is_probe

    def answered(self) -> None:
        """A probe's backend began to answer: it is in again, on its last chance until a success."""
        condition = self._condition
        if self.is_probe and condition is not None and condition.epoch == self._epoch:
            self._health.readmit(condition)
            condition.failures = max(self._health.rules.eject_after - 1, 0)
            self._epoch = condition.epoch
            self.is_probe = False

    def succeeded(self) -> None:
        """It answered to the end."""
        condition = self._end()
        if condition is not None and condition.epoch == self._epoch:
            condition.failures = 0
            condition.sole_caller = ""
            if condition.ejected:
                self._health.readmit(condition)

    def failed(self, caller: str | None = None) -> bool:
        """It failed; ``caller`` is whose request was answered with a server error, None where the
        failure cannot follow from the request.

        Returns whether the backend should be asked how it is, because only one caller's requests
        failed, and that often (``Health.gave_no_answer`` is for a bad one).
        """
        condition = self._end()
        if condition is None:
            return False
        condition.total_failures += 1
        if condition.epoch != self._epoch:
            return False
        return self._health.blame(condition, caller, was_probe=self.is_probe)

    def ended(self) -> None:
        """It ended, and that says nothing about the backend."""
        self._end()

    def _end(self) -> Condition | None:
        condition, self._condition = self._condition, None
        if condition is not None and self.is_probe and condition.epoch == self._epoch:
            condition.probing = False
        return condition


class Health:
    """Ejects and readmits; ``clock`` in seconds. Belongs to one event loop."""

    __slots__ = ("_clock", "_ejected", "rules")

    def __init__(self, rules: Rules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._ejected = 0

    @property
    def all_in(self) -> bool:
        """Whether no backend is ejected, so that none needs to be looked at."""
        return not self._ejected

    def trial(self, condition: Condition, standing: Standing = Standing.IN) -> Trial:
        """For an exchange that begins now; one that is ``DUE`` becomes the probe."""
        is_probe = standing is Standing.DUE
        if is_probe:
            condition.probing = True
        return Trial(self, condition, is_probe)

    def standings(self, group: Sequence[Condition]) -> list[Standing]:
        """What each backend of ``group``, which serve the same model, is to the next request.

        At most half of them are out, so never the only one; those that are ejected the longest
        from now on are.
        """
        if self.all_in:
            return [Standing.IN] * len(group)
        now = self._clock()
        worst = self.left_out(group)
        return [self._standing(each, each in worst, now) for each in group]

    def left_out(self, group: Sequence[Condition]) -> list[Condition]:
        """Those of ``group`` that are ejected and not among the half that is kept."""
        ejected = [each for each in group if each.ejected]
        return sorted(ejected, key=lambda each: each.until, reverse=True)[: len(group) // 2]

    def seconds_left(self, condition: Condition) -> float:
        """How long the ejection still lasts; 0 when it is over or there is none."""
        return max(condition.until - self._clock(), 0.0) if condition.ejected else 0.0

    def readmit(self, condition: Condition) -> None:
        """It works again."""
        if condition.ejected:
            condition.ejected = False
            condition.probing = False
            condition.failures = 0
            condition.sole_caller = ""
            condition.epoch += 1
            condition.returned = self._clock()
            self._ejected -= 1

    def blame(self, condition: Condition, caller: str | None = None, *, was_probe: bool) -> bool:
        """Count a failure; eject, or eject again for longer, when it is one too many.

        ``caller`` and the result are those of ``Trial.failed``.
        """
        condition.failures += 1
        if condition.sole_caller == "":
            condition.sole_caller = caller
        elif condition.sole_caller != caller:
            condition.sole_caller = None
        rules, now = self.rules, self._clock()
        if condition.ejected:
            if was_probe or now >= condition.until:
                self._prolong(condition, now)
        elif rules.eject_after and condition.failures >= rules.eject_after:
            if condition.sole_caller is not None:
                return not condition.failures % rules.eject_after
            self._eject(condition, now)
        return False

    def gave_no_answer(self, condition: Condition, epoch: int) -> None:
        """Eject a backend that was asked how it is at ``epoch`` and did not answer well.

        Nothing happens when it was ejected, came back or answered a request meanwhile.
        """
        if condition.epoch == epoch and condition.failures and not condition.ejected:
            self._eject(condition, self._clock())

    def _eject(self, condition: Condition, now: float) -> None:
        if now - condition.returned > LONGEST_SECONDS:
            condition.streak = 0
        condition.ejected = True
        condition.ejections += 1
        self._ejected += 1
        self._prolong(condition, now)

    def _prolong(self, condition: Condition, now: float) -> None:
        condition.streak += 1
        condition.until = now + min(self.rules.seconds * condition.streak, LONGEST_SECONDS)
        condition.probing = False
        condition.epoch += 1

    def _standing(self, condition: Condition, is_worst: bool, now: float) -> Standing:
        if not condition.ejected:
            return Standing.IN
        if self.rules.probes and now >= condition.until and not condition.probing:
            return Standing.DUE
        return Standing.OUT if is_worst else Standing.SPARE
