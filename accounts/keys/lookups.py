"""Look-ups of keys for callers on an event loop: one thread, one query for all that wait.

While one query runs, the next look-ups are queued; callers with the same key share one. So a change
of one key, after which every key is looked up again, costs a few queries and not one per key.
Unknown keys wait in a queue for each client network, and the networks take turns: a flood of
invented keys delays only the networks that it comes from.
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

from accounts.keys.lookup_budget import UnknownKeyBudget, too_many_waiting
from svc_project.lib.database.connections import keep_usable
from svc_project.lib.database.threads import DatabaseThread

MOST_WAITING = 500
"""The most waiting unknown keys of all networks."""
MOST_WAITING_OF_ONE = 150

_LARGEST_BATCH = 200
_LOOK_SECONDS = 0.01
_RETRY_SECONDS = 0.25
_FAILING_SECONDS = 2.0
_SLOW_SECONDS = 0.5
"""Well below the timeout of a known key, so that only the first such caller waits."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Lookup(Generic[Answer]):
    secret: str
    network: str | None
    """The client network of an unknown key; ``None`` for a known one."""
    answer: Future[Answer] = field(default_factory=Future)


class Lookups(Generic[Answer]):
    """Batches calls of ``look_up``, which takes many secrets or raises ``django.db.Error`` for all.

    ``is_known`` tells whether an answer is a key that exists.
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
        self._known: dict[str, _Lookup[Answer]] = {}
        self._unknown: dict[str, dict[str, _Lookup[Answer]]] = {}
        """Queues by network, in the order of their turns; none is empty."""
        self._waiting = 0
        """Questions in ``_unknown``."""
        self._condition = threading.Condition()
        self._closing = False
        self._began: float | None = None
        self._failed = float("-inf")
        self._thread = DatabaseThread("key-look-ups", self._work)

    def submit(self, secret: str, network: str | None) -> Future[Answer]:
        """Return the future answer of a query that begins after this call.

        ``network``: the client network of an unknown key, "" if not known; ``None`` for a key that
        was valid before, which spends no budget. Raises ``ServerOverloaded``, now or by the answer,
        when more unknown keys wait than the budget can serve in time.
        """
        with self._condition:
            waiting = self._known if network is None else self._unknown.get(network, {})
            lookup = waiting.get(secret)
            if lookup is None:
                if network is not None:
                    if network and len(waiting) >= MOST_WAITING_OF_ONE:
                        raise too_many_waiting()
                    self._make_room(len(waiting))
                    self._unknown[network] = waiting
                    self._waiting += 1
                lookup = waiting[secret] = _Lookup(secret, network)
                # A caller that stops waiting must not cancel it for the others.
                lookup.answer.set_running_or_notify_cancel()
                self._condition.notify()
        self._thread.ensure()
        return lookup.answer

    def _make_room(self, own: int) -> None:
        """Make room for a look-up of a network with ``own`` waiting. Raises ``ServerOverloaded``.

        When the queues are full, the longest one loses its last look-up to a shorter one.
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
        """Whether the last query failed recently, or the running one is slow."""
        now = time.monotonic()
        began = self._began
        return now - self._failed < _FAILING_SECONDS or (
            began is not None and now - began > _SLOW_SECONDS
        )

    def close(self) -> None:
        """End the thread once no known key waits; a later ``submit`` starts it again.

        Unknown keys that wait are refused: a flood of them would hold up the end of the process.
        """
        with self._condition:
            self._closing = True
            for waiting in self._unknown.values():
                for lookup in waiting.values():
                    lookup.answer.set_exception(too_many_waiting())
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
            except Exception as error:  # every waiting caller gets it, and the thread goes on
                self._failed = time.monotonic()
                for lookup in batch:
                    lookup.answer.set_exception(error)
                if isinstance(error, Error):
                    time.sleep(_RETRY_SECONDS)
            finally:
                self._began = None

    def _next_batch(self) -> list[_Lookup[Answer]]:
        """Wait for look-ups and return them. Empty when the thread is to end."""
        with self._condition:
            while not (batch := self._take()):
                if self._closing and not self._unknown:
                    return []
                self._condition.wait(_LOOK_SECONDS if self._unknown else None)
            return batch

    def _take(self) -> list[_Lookup[Answer]]:
        batch = list(islice(self._known.values(), _LARGEST_BATCH))
        for lookup in batch:
            del self._known[lookup.secret]
        turns = list(self._unknown)
        while turns and len(batch) < _LARGEST_BATCH:
            turns = [network for network in turns if self._take_one(network, batch)]
        return batch

    def _take_one(self, network: str, batch: list[_Lookup[Answer]]) -> bool:
        """Move a lookup of ``network`` into ``batch``; whether there may be another one."""
        if len(batch) >= _LARGEST_BATCH or not self._budget.take(network):
            return False
        waiting = self._unknown.pop(network)
        batch.append(waiting.pop(next(iter(waiting))))
        self._waiting -= 1
        if waiting:
            # To the end of the queue: the next batch begins with another network.
            self._unknown[network] = waiting
        return bool(waiting)

    def _answer(self, batch: Sequence[_Lookup[Answer]]) -> None:
        answers = self._look_up([lookup.secret for lookup in batch])
        for lookup in batch:
            if lookup.network is not None and self._is_known(answers[lookup.secret]):
                self._budget.refund(lookup.network)
            lookup.answer.set_result(answers[lookup.secret])
