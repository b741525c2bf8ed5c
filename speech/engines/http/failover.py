"""Several speech servers behind one voice: who speaks, and who takes over.

A request stays at one server, by weighted rendezvous hashing over its id, so that its sentences sound
alike. A server that fails before the first sound of an utterance is replaced by the next: nothing was
heard of it, and to speak again changes nothing there. Servers that keep failing are ejected by the rules
of model servers (``core.backends.ejection``).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from core.backends import rendezvous
from core.backends.ejection import BackendHealth, Ejector, Eligibility, OutcomeReport
from core.monitoring.metrics import Counter, Family, Sample
from speech.engines import Engine, EngineError, EngineFull, SpokenWord, Utterance
from speech.engines.http.client import RequestRefused
from speech.engines.http.engine import HttpEngine

MOST_TRIES: Final = 3
"""The most servers that are asked for one utterance."""

takeovers = Counter(
    "svc_speech_backend_takeovers",
    "Utterances that another server spoke, because this one failed before the first sound.",
    ("backend",),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A server of a voice: the voice's name there, and its share of requests."""

    name: str
    id: str
    engine: HttpEngine
    engine_voice: str
    weight: int


class Failover(Engine):
    """Speaks by the servers of one voice, one at least. It owns none of them, so ``close`` does nothing."""

    def __init__(self, places: Sequence[Place], ejector: Ejector) -> None:
        self._places = places
        self._ejector = ejector

    async def speak(self, utterance: Utterance) -> AsyncGenerator[bytes, None]:
        """As ``Engine.speak``. Raises what the last server that was asked did."""
        async with aclosing(self._spoken(utterance, is_timed=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, bytes):
                    yield piece

    async def speak_timed(self, utterance: Utterance) -> AsyncGenerator[bytes | SpokenWord, None]:
        """As ``Engine.speak_timed``, where each of the servers gives the times of words."""
        async with aclosing(self._spoken(utterance, is_timed=True)) as pieces:
            async for piece in pieces:
                yield piece

    async def _spoken(
        self, utterance: Utterance, *, is_timed: bool
    ) -> AsyncGenerator[bytes | SpokenWord, None]:
        attempts = _Attempts(utterance.organization_id)
        order = self._order(utterance)
        try:
            for place, eligibility in order:
                report = self._ejector.report_for(place.engine.health, eligibility)
                attempts.begin(place.name, report)
                said = replace(utterance, engine_voice=place.engine_voice)
                try:
                    async with aclosing(place.engine.spoken(said, is_timed=is_timed)) as pieces:
                        async for piece in pieces:
                            attempts.heard()
                            yield piece
                except EngineError as error:
                    attempts.failed(error)
                    if attempts.is_heard or place is order[-1][0]:
                        raise
                else:
                    report.succeeded()
                    return
        finally:
            attempts.close()

    def _order(self, utterance: Utterance) -> list[tuple[Place, Eligibility]]:
        """The servers to ask, best first: not those that are ejected, nor, before others, full ones."""
        group = [place.engine.health for place in self._places]
        found = zip(self._places, self._ejector.eligibilities(group), strict=True)
        ranked = [each for each in found if each[1] is not Eligibility.EJECTED]
        if len(ranked) > 1:
            key = rendezvous.number_of(utterance.request_id)

            def score(place: Place) -> float:
                return rendezvous.score(
                    place.weight, rendezvous.rank(key, rendezvous.number_of(place.id))
                )

            ranked.sort(key=lambda each: (each[1], not each[0].engine.has_room, -score(each[0])))
        return ranked[:MOST_TRIES]

    async def close(self) -> None:
        """Do nothing: the engines are closed by their owner."""


class _Attempts:
    """Reports what became of one utterance at each server that was asked.

    A server error may be the utterance's own fault, unless another server then speaks it; until that is
    known its report waits.
    """

    def __init__(self, organization_id: str) -> None:
        self._organization_id = organization_id
        self._reports: list[OutcomeReport] = []
        """Of servers that were asked; those that were made take no second outcome."""
        self._failed: list[str] = []
        self._waiting: list[OutcomeReport] = []
        self._name = ""
        self.is_heard = False
        """Whether the first sound came."""

    def begin(self, name: str, report: OutcomeReport) -> None:
        """Note that the next server is asked."""
        self._name = name
        self._reports.append(report)

    def heard(self) -> None:
        """Note sound: the servers before have failed where this one did not."""
        if self.is_heard:
            return
        self.is_heard = True
        self._reports[-1].answered()
        for report in self._waiting:
            report.failed()
        for name in self._failed:
            takeovers.add(name)

    def failed(self, error: EngineError) -> None:
        """Report a failure of the server that was asked last."""
        report = self._reports[-1]
        self._failed.append(self._name)
        if isinstance(error, RequestRefused):
            report.answered()
        elif type(error) is EngineError:
            self._waiting.append(report)
        elif not isinstance(error, EngineFull):
            report.failed()

    def close(self) -> None:
        """Report the rest: errors that all servers had count for the caller alone."""
        if len(self._failed) == len(self._reports):
            for report in self._waiting:
                report.failed(self._organization_id)
        for report in self._reports:
            report.ended()


_GAUGES: Final[tuple[tuple[str, str, Callable[[HttpEngine, BackendHealth], float]], ...]] = (
    ("ejected", "1 while it is ejected.", lambda _, health: health.ejected),
    (
        "failures_in_a_row",
        "Consecutive failures that count against it.",
        lambda _, health: health.failures,
    ),
    (
        "last_answer_timestamp_seconds",
        "When it last spoke a whole utterance for this worker; 0 for never.",
        lambda _, health: health.last_answer,
    ),
    (
        "last_failure_timestamp_seconds",
        "When it last failed for this worker; 0 for never.",
        lambda _, health: health.last_failure,
    ),
    (
        "in_flight",
        "Utterances that it speaks for this worker.",
        lambda engine, _: engine.inflight,
    ),
    ("waiting", "Utterances in its queue.", lambda engine, _: engine.waiting),
)


def families(places: Sequence[tuple[str, HttpEngine, BackendHealth]]) -> Iterator[Family]:
    """The state of speech servers in this process, for ``/metrics``."""
    yield takeovers.family()
    for name, about, value in _GAUGES:
        samples = [
            Sample("", {"backend": backend}, float(value(engine, health)))
            for backend, engine, health in places
        ]
        yield Family(f"svc_speech_backend_{name}", "gauge", about, samples)
    failed = [Sample("_total", {"backend": name}, of.total_failures) for name, _, of in places]
    yield Family(
        "svc_speech_backend_failures", "counter", "Failures that count against it.", failed
    )
    ejected = [Sample("_total", {"backend": name}, of.ejections) for name, _, of in places]
    yield Family("svc_speech_backend_ejections", "counter", "Times that it was ejected.", ejected)
