"""Look-ups of keys for callers on an event loop: one thread, one query for all that wait.

While one query runs the next questions gather, callers with the same key sharing one. So a change
of one key, after which every key is looked up again, costs a few queries and not one per key.
Unknown keys wait in a queue for each client network, and the networks take turns: a flood of
invented keys delays those of the networks that it comes from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from django.db import Error

from accounts.lookup_budget import UnknownKeyBudget, too_many_waiting
from accounts.threads import DatabaseThread
from svc_project.lib.connections import keep_usable

MOST_WAITING = 500
"""Unknown keys that wait, of all networks."""
MOST_WAITING_OF_ONE = 150

_LARGEST_BATCH = 200
_LOOK_SECONDS = 0.01
_RETRY_SECONDS = 0.25
_FAILING_SECONDS = 2.0
_SLOW_SECONDS = 0.5
"""Well below what a caller with a known key waits, so that only the first such caller waits."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Question(Generic[Answer]):
    secret: str
    network: str | None
    """Where an unknown key came from; ``None`` of a known one."""
    answer: Future[Answer] = field(default_factory=Future)


class Lookups(Generic[Answer]):
    """``look_up`` answers many secrets at once, or raises ``django.db.Error`` for all of them.

    ``is_known`` says of an answer whether it is a key that exists.
    """

    def __init__(
        self,
        look_up: Callable[[Sequence[str]], Mapping[str, Answer]],
        is_known: Callable[[Answer], bool],
        budget: UnknownKeyBudget,
    ) -> None:
        self._look_up = look_up
        self._is_known = is_known
        self._budget = budget
        self._known: dict[str, _Question[Answer]] = {}
        self._unknown: dict[str, dict[str, _Question[Answer]]] = {}
        """By network, in the order of their turns; no queue in it is empty."""
        self._waiting = 0
        """Questions in ``_unknown``."""
        self._condition = threading.Condition()
        self._closing = False
        self._began: float | None = None
        self._failed = float("-inf")
        self._thread = DatabaseThread("key-look-ups", self._work)

    def ask(self, secret: str, network: str | None) -> Future[Answer]:
        """The coming answer, of a query that begins after this call.

        ``network``: where an unknown key came from, "" when nobody can say; ``None`` for a key that
        was valid before, which spends no budget. Raises ``ServerOverloaded``, now or by the answer,
        when more unknown keys wait than the budget can serve in time.
        """
        with self._condition:
            waiting = self._known if network is None else self._unknown.get(network, {})
            question = waiting.get(secret)
            if question is None:
                if network is not None:
                    if network and len(waiting) >= MOST_WAITING_OF_ONE:
                        raise too_many_waiting()
                    self._make_room(len(waiting))
                    self._unknown[network] = waiting
                    self._waiting += 1
                question = waiting[secret] = _Question(secret, network)
                # One caller that gives up must not cancel it for the others.
                question.answer.set_running_or_notify_cancel()
                self._condition.notify()
        self._thread.ensure()
        return question.answer

    def _make_room(self, own: int) -> None:
        """Let one more wait of a network that has ``own`` waiting. Raises ``ServerOverloaded``.

        Where all places are taken, the longest queue loses its last to a shorter one.
        """
        if self._waiting < MOST_WAITING:
            return
        longest = max(self._unknown.values(), key=len)
        if len(longest) <= own + 1:
            raise too_many_waiting()
        _, last = longest.popitem()
        self._waiting -= 1
        last.answer.set_exception(too_many_waiting())

    def is_failing(self) -> bool:
        """Whether the database refused the last look-up just now, or is slow to answer this one."""
        now = time.monotonic()
        began = self._began
        return now - self._failed < _FAILING_SECONDS or (
            began is not None and now - began > _SLOW_SECONDS
        )

    def close(self) -> None:
        """End the thread once no known key waits; a later ``ask`` starts it again.

        Unknown keys that wait are refused: a flood of them would hold up the end of the process.
        """
        with self._condition:
            self._closing = True
            for waiting in self._unknown.values():
                for question in waiting.values():
                    question.answer.set_exception(too_many_waiting())
            self._unknown.clear()
            self._waiting = 0
            self._condition.notify()
        self._thread.join()
        self._closing = False
        if self._known or self._unknown:
            self._thread.ensure()

    def _work(self) -> None:
        while batch := self._next_batch():
            self._began = time.monotonic()
            try:
                keep_usable()
                self._answer(batch)
            except Exception as error:  # every waiting caller gets it, and the thread lives on
                self._failed = time.monotonic()
                for question in batch:
                    question.answer.set_exception(error)
                if isinstance(error, Error):
                    time.sleep(_RETRY_SECONDS)
            finally:
                self._began = None

    def _next_batch(self) -> list[_Question[Answer]]:
        """What to ask now; waits for it. Empty when the thread is to end."""
        with self._condition:
            while not (batch := self._take()):
                if self._closing and not self._unknown:
                    return []
                self._condition.wait(_LOOK_SECONDS if self._unknown else None)
            return batch

    def _take(self) -> list[_Question[Answer]]:
        batch = list(islice(self._known.values(), _LARGEST_BATCH))
        for question in batch:
            del self._known[question.secret]
        turns = list(self._unknown)
        while turns and len(batch) < _LARGEST_BATCH:
            turns = [network for network in turns if self._take_one(network, batch)]
        return batch

    def _take_one(self, network: str, batch: list[_Question[Answer]]) -> bool:
        """Move a question of ``network`` into ``batch``; whether there may be another one."""
        if len(batch) >= _LARGEST_BATCH or not self._budget.take(network):
            return False
        waiting = self._unknown.pop(network)
        batch.append(waiting.pop(next(iter(waiting))))
        self._waiting -= 1
        if waiting:
            # Behind the others: the next batch begins with another network.
            self._unknown[network] = waiting
        return bool(waiting)

    def _answer(self, batch: Sequence[_Question[Answer]]) -> None:
        answers = self._look_up([question.secret for question in batch])
        for question in batch:
            if question.network is not None and self._is_known(answers[question.secret]):
                self._budget.give_back(question.network)
            question.answer.set_result(answers[question.secret])
