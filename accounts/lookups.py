"""Look-ups of keys for callers on an event loop: one thread, one query for all that wait.

While one query runs the next questions gather, callers with the same key sharing one. So a change
of one key, after which every key is looked up again, costs a few queries and not one per key.
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

from accounts.threads import DatabaseThread
from svc_project.lib.connections import keep_usable
from svc_project.lib.errors import ServerOverloaded

UNKNOWN_PER_SECOND = 100
"""Look-ups a second that find nothing; the checksum is public, so anyone can cause them."""
LONGEST_WAIT_SECONDS = 5.0
"""How long a key nobody has seen may wait for its look-up before the answer is 503."""

_LARGEST_BATCH = 200
_RETRY_SECONDS = 0.25
_FAILING_SECONDS = 2.0
_SLOW_SECONDS = 0.5
"""Well below what a caller with a known key waits, so that only the first such caller waits."""

Answer = TypeVar("Answer")


class UnknownKeyBudget:
    """A token bucket of one second's look-ups. A look-up that finds a key gives its token back.

    So a start with thousands of real keys is not slowed down, and a stream of invented ones is.
    """

    def __init__(self, per_second: int = UNKNOWN_PER_SECOND) -> None:
        self._per_second = per_second
        self._tokens = float(per_second)
        self._filled = time.monotonic()
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Take up to ``wanted`` tokens; returns how many there were."""
        with self._lock:
            now = time.monotonic()
            self._tokens = min(
                self._per_second, self._tokens + (now - self._filled) * self._per_second
            )
            self._filled = now
            taken = min(wanted, int(self._tokens))
            self._tokens -= taken
            return taken

    def give_back(self, tokens: int) -> None:
        """Return tokens whose look-ups found a key."""
        with self._lock:
            self._tokens = min(self._per_second, self._tokens + tokens)

    def take_patiently(self) -> None:
        """Take one token, waiting for it in this thread; raises ``ServerOverloaded``."""
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while not self.take(1):
            if time.monotonic() > deadline:
                raise ServerOverloaded
            time.sleep(1 / self._per_second)


@dataclass(slots=True)
class _Question(Generic[Answer]):
    secret: str
    known: bool
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
        self._unknown: dict[str, _Question[Answer]] = {}
        self._condition = threading.Condition()
        self._closing = False
        self._began: float | None = None
        self._failed = float("-inf")
        self._thread = DatabaseThread("key-look-ups", self._work)

    def ask(self, secret: str, known: bool) -> Future[Answer]:
        """The coming answer, of a query that begins after this call.

        ``known``: the key was valid before, so it spends no budget. Raises ``ServerOverloaded``
        when more unknown keys wait than the budget can serve in time.
        """
        waiting = self._known if known else self._unknown
        with self._condition:
            question = waiting.get(secret)
            if question is None:
                if not known and len(waiting) >= UNKNOWN_PER_SECOND * LONGEST_WAIT_SECONDS:
                    raise ServerOverloaded
                question = waiting[secret] = _Question(secret, known)
                # One caller that gives up must not cancel it for the others.
                question.answer.set_running_or_notify_cancel()
                self._condition.notify()
        self._thread.ensure()
        return question.answer

    def is_failing(self) -> bool:
        """Whether the database refused the last look-up just now, or is slow to answer this one."""
        now = time.monotonic()
        began = self._began
        return now - self._failed < _FAILING_SECONDS or (
            began is not None and now - began > _SLOW_SECONDS
        )

    def close(self) -> None:
        """End the thread once nobody waits; a later ``ask`` starts it again."""
        with self._condition:
            self._closing = True
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
                self._condition.wait(1 / UNKNOWN_PER_SECOND if self._unknown else None)
            return batch

    def _take(self) -> list[_Question[Answer]]:
        batch = list(islice(self._known.values(), _LARGEST_BATCH))
        granted = self._budget.take(min(len(self._unknown), _LARGEST_BATCH - len(batch)))
        batch += islice(self._unknown.values(), granted)
        for question in batch:
            del (self._known if question.known else self._unknown)[question.secret]
        return batch

    def _answer(self, batch: Sequence[_Question[Answer]]) -> None:
        answers = self._look_up([question.secret for question in batch])
        self._budget.give_back(
            sum(not q.known and self._is_known(answers[q.secret]) for q in batch)
        )
        for question in batch:
            question.answer.set_result(answers[question.secret])
