"""What the ledger says was spoken in a day, asked without holding up a request for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

UsedBefore = Callable[[str, str], Awaitable[int]]
"""Characters that the ledger has of an organization (UUID text) on a UTC day (``2026-11-20``)."""

PATIENCE_SECONDS: Final = 1.0
"""How long callers wait for one question."""

REPEAT_SECONDS: Final = 10.0
"""How long after a failure the same question is asked again."""


@dataclass(frozen=True, slots=True)
class _Question:
    began: float
    task: asyncio.Task[int | None]


class DayFigures:
    """Asks ``used_before``: one question at a time for each organization and day.

    Whoever needs the figure while a question is under way waits for that one. Used from one event
    loop.
    """

    def __init__(self, used_before: UsedBefore) -> None:
        self._used_before = used_before
        self._questions: dict[tuple[str, str], _Question] = {}
        self._failing = False

    async def ask(self, organization_id: str, day: str) -> int | None:
        """The figure; None when the ledger fails, or has not answered after a second."""
        key = (organization_id, day)
        question = self._questions.get(key)
        if question is None or self._is_answered(question) or self._is_due_again(question):
            question = self._begin(key)
        patience = question.began + PATIENCE_SECONDS - asyncio.get_running_loop().time()
        if patience > 0:
            await asyncio.wait([question.task], timeout=patience)
        if not question.task.done():
            self._note_failure("no answer yet")
        return self._take(key, question)

    def late(self, organization_id: str, day: str) -> int | None:
        """The figure of a question whose askers were told None; once, and without waiting.

        After a failure this asks again when it is time, so that a later call has the figure.
        """
        key = (organization_id, day)
        question = self._questions.get(key)
        if question is None:
            return None
        if self._is_due_again(question):
            question = self._begin(key)
        return self._take(key, question)

    def _take(self, key: tuple[str, str], question: _Question) -> int | None:
        figure = question.task.result() if question.task.done() else None
        if figure is not None and self._questions.get(key) is question:
            del self._questions[key]
        return figure

    def _is_answered(self, question: _Question) -> bool:
        return question.task.done() and question.task.result() is not None

    def _is_due_again(self, question: _Question) -> bool:
        """Whether the question failed, long enough ago to ask again."""
        now = asyncio.get_running_loop().time()
        return (
            question.task.done()
            and question.task.result() is None
            and now >= question.began + REPEAT_SECONDS
        )

    def _begin(self, key: tuple[str, str]) -> _Question:
        self._forget_other_days(key[1])
        loop = asyncio.get_running_loop()
        question = _Question(loop.time(), loop.create_task(self._read(*key)))
        self._questions[key] = question
        return question

    def _forget_other_days(self, day: str) -> None:
        """Drop questions that failed and that nobody will ask again."""
        oldest = next(iter(self._questions), None)
        if oldest is not None and oldest[1] != day:
            self._questions = {
                key: question
                for key, question in self._questions.items()
                if key[1] == day or not question.task.done()
            }

    async def _read(self, organization_id: str, day: str) -> int | None:
        try:
            figure = await self._used_before(organization_id, day)
        except Exception as error:  # whatever fails there, speech goes on
            self._note_failure(type(error).__name__)
            return None
        self._failing = False
        return figure

    def _note_failure(self, reason: str) -> None:
        if not self._failing:
            log.warning(
                "the ledger did not say what was spoken today (%s); daily quotas that are not known "
                "yet count from 0 until it does",
                reason,
            )
        self._failing = True
