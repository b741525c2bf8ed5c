"""Ejects backends that keep failing, for a while (passive outlier detection).

Only the outcomes of real requests count, in each process separately. A request takes an
``OutcomeReport`` for its backend's ``BackendHealth`` and reports the outcome there. A server error
may be caused by the request, so errors of a single caller never eject a backend. The rules are in
docs/explain/backends.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

LONGEST_SECONDS: Final = 60.0
"""The longest ejection, and the time without one after which the next is short again."""


@dataclass(frozen=True, slots=True)
class Rules:
    """``eject_after`` consecutive failures eject a backend, 0: never. The first ejection lasts
    ``seconds``, the second in a row twice that, and so on up to a minute.

    ``probes``: whether a request probes an ejected backend when its time is over. Otherwise only
    ``Ejector.readmit`` brings it back.
    """

    eject_after: int
    seconds: float
    probes: bool = True


class Eligibility(IntEnum):
    """How a backend ranks when a request chooses one; lower is better."""

    PROBE_DUE = 0
    """Ejected, and its time is over: this request may probe it."""
    ELIGIBLE = 1
    LAST_RESORT = 2
    """Ejected, but half of the group is excluded already: used when no other has room."""
    EJECTED = 3


class BackendHealth:
    """The health of one backend, as one process knows it."""

    __slots__ = (
        "ejected",
        "ejections",
        "epoch",
        "failures",
        "last_answer",
        "last_failure",
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
        """Consecutive failures."""
        self.sole_caller: str | None = ""
        """The caller of all these failures, when each was a server error; empty while there is
        none, None for several callers or a failure of another kind."""
        self.until = 0.0
        """The end of the ejection, on the clock of ``Ejector``."""
        self.probing = False
        self.epoch = 0
        """Counts ejections and readmissions: outcomes from an earlier epoch are ignored."""
        self.streak = 0
        """Ejections in a row, with less than a minute between them."""
        self.returned = float("-inf")
        self.last_answer = self.last_failure = 0.0
        """When an answer was complete, and when one failed, in Unix seconds; 0 before the first."""
        self.ejections = 0
        self.total_failures = 0


class OutcomeReport:
    """The outcome of one exchange with a backend, reported once; later calls do nothing."""

    __slots__ = ("_backend", "_ejector", "_epoch", "is_probe")

    def __init__(self, ejector: Ejector, backend: BackendHealth, is_probe: bool) -> None:
        self._ejector = ejector
        self._backend: BackendHealth | None = backend
        self._epoch = backend.epoch
        self.is_probe = is_probe

    def answered(self) -> None:
        """Readmit a probed backend that began to answer; until a success, one failure ejects it."""
        backend = self._backend
        if self.is_probe and backend is not None and backend.epoch == self._epoch:
            self._ejector.readmit(backend)
            backend.failures = max(self._ejector.rules.eject_after - 1, 0)
            self._epoch = backend.epoch
            self.is_probe = False

    def succeeded(self) -> None:
        """Report a complete answer."""
        backend = self._end()
        if backend is None:
            return
        backend.last_answer = time.time()
        if backend.epoch == self._epoch:
            backend.failures = 0
            backend.sole_caller = ""
            if backend.ejected:
                self._ejector.readmit(backend)

    def failed(self, caller: str | None = None) -> bool:
        """Report a failure; ``caller`` sent the request that got a server error, None where the
        request cannot have caused the failure.

        Returns whether the backend needs a health check, because only one caller's requests failed,
        and often; ``Ejector.failed_health_check`` takes a bad result.
        """
        backend = self._end()
        if backend is None:
            return False
        backend.total_failures += 1
        backend.last_failure = time.time()
        if backend.epoch != self._epoch:
            return False
        return self._ejector.count_failure(backend, caller, was_probe=self.is_probe)

    def ended(self) -> None:
        """Report an end that says nothing about the backend."""
        self._end()

    def _end(self) -> BackendHealth | None:
        backend, self._backend = self._backend, None
        if backend is not None and self.is_probe and backend.epoch == self._epoch:
            backend.probing = False
        return backend


class Ejector:
    """Ejects and readmits backends; ``clock`` is in seconds. Belongs to one event loop."""

    __slots__ = ("_clock", "_ejected", "rules")

    def __init__(self, rules: Rules, clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self._clock = clock
        self._ejected = 0

    @property
    def none_ejected(self) -> bool:
        """Whether no backend is ejected, so that callers need not check each."""
        return not self._ejected

    def report_for(
        self, backend: BackendHealth, eligibility: Eligibility = Eligibility.ELIGIBLE
    ) -> OutcomeReport:
        """Return the report of an exchange that begins now; ``PROBE_DUE`` makes it the probe."""
        is_probe = eligibility is Eligibility.PROBE_DUE
        if is_probe:
            backend.probing = True
        return OutcomeReport(self, backend, is_probe)

    def eligibilities(self, group: Sequence[BackendHealth]) -> list[Eligibility]:
        """Return the eligibility of each backend of ``group``, which serve the same model.

        At most half of them are ``EJECTED``, never the only one: those with the latest end.
        """
        if self.none_ejected:
            return [Eligibility.ELIGIBLE] * len(group)
        now = self._clock()
        worst = self.excluded(group)
        return [self._eligibility(each, each in worst, now) for each in group]

    def excluded(self, group: Sequence[BackendHealth]) -> list[BackendHealth]:
        """The backends of ``group`` that are ejected and not among the half that is kept."""
        ejected = [each for each in group if each.ejected]
        return sorted(ejected, key=lambda each: each.until, reverse=True)[: len(group) // 2]

    def seconds_left(self, backend: BackendHealth) -> float:
        """Seconds until the ejection ends; 0 when it is over or there is none."""
        return max(backend.until - self._clock(), 0.0) if backend.ejected else 0.0

    def readmit(self, backend: BackendHealth) -> None:
        """End the ejection of a backend that works again."""
        if backend.ejected:
            backend.ejected = False
            backend.probing = False
            backend.failures = 0
            backend.sole_caller = ""
            backend.epoch += 1
            backend.returned = self._clock()
            self._ejected -= 1

    def count_failure(
        self, backend: BackendHealth, caller: str | None = None, *, was_probe: bool
    ) -> bool:
        """Count a failure; eject the backend, or prolong its ejection, when there are too many.

        ``caller`` and the result are as in ``OutcomeReport.failed``.
        """
        backend.failures += 1
        if backend.sole_caller == "":
            backend.sole_caller = caller
        elif backend.sole_caller != caller:
            backend.sole_caller = None
        rules, now = self.rules, self._clock()
        if backend.ejected:
            if was_probe or now >= backend.until:
                self._prolong(backend, now)
        elif rules.eject_after and backend.failures >= rules.eject_after:
            if backend.sole_caller is not None:
                return not backend.failures % rules.eject_after
            self._eject(backend, now)
        return False

    def failed_health_check(self, backend: BackendHealth, epoch: int) -> None:
        """Eject a backend that failed a health check begun at ``epoch``.

        Does nothing when it was ejected, readmitted or answered a request meanwhile.
        """
        if backend.epoch == epoch and backend.failures and not backend.ejected:
            self._eject(backend, self._clock())

    def _eject(self, backend: BackendHealth, now: float) -> None:
        if now - backend.returned > LONGEST_SECONDS:
            backend.streak = 0
        backend.ejected = True
        backend.ejections += 1
        self._ejected += 1
        self._prolong(backend, now)

    def _prolong(self, backend: BackendHealth, now: float) -> None:
        backend.streak += 1
        backend.until = now + min(self.rules.seconds * backend.streak, LONGEST_SECONDS)
        backend.probing = False
        backend.epoch += 1

    def _eligibility(self, backend: BackendHealth, is_worst: bool, now: float) -> Eligibility:
        if not backend.ejected:
            return Eligibility.ELIGIBLE
        if self.rules.probes and now >= backend.until and not backend.probing:
            return Eligibility.PROBE_DUE
        return Eligibility.EJECTED if is_worst else Eligibility.LAST_RESORT
