"""Reads a day's spoken characters from the ledger, with a short timeout for requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

log = logging.getLogger(__name__)

UsedBefore = Callable[[str, str], Awaitable[int]]
"""Returns the ledger's characters of an organization (UUID text) on a UTC day (``2026-11-20``)."""

WAIT_SECONDS: Final = 1.0
"""How long callers wait for a query."""

RETRY_SECONDS: Final = 10.0
"""How long after its start a failed query may be retried."""


@dataclass(frozen=True, slots=True)
class _Query:
    began: float
    task: asyncio.Task[int | None]


class DayCounts:
    """Calls ``used_before``, one query at a time for each organization and day.

    Callers that come while a query is running share it. Used from one event loop.
    """

    def __init__(self, used_before: UsedBefore) -> None:
        self._used_before = used_before
        self._queries: dict[tuple[str, str], _Query] = {}
        self._failing = False

    async def read(self, organization_id: str, day: str) -> int | None:
        """The count; None when the ledger fails or does not answer within ``WAIT_SECONDS``."""
        key = (organization_id, day)
        query = self._queries.get(key)
        if query is None or self._is_answered(query) or self._is_due_again(query):
            query = self._begin(key)
        timeout = query.began + WAIT_SECONDS - asyncio.get_running_loop().time()
        if timeout > 0:
            await asyncio.wait([query.task], timeout=timeout)
        if not query.task.done():
            self._note_failure("no answer yet")
        return self._take(key, query)

    def late_count(self, organization_id: str, day: str) -> int | None:
        """Return, once and without waiting, a count that arrived after its callers had timed out.

        Starts a failed query again after ``RETRY_SECONDS``, so that a later call has the count.
        """
        key = (organization_id, day)
        query = self._queries.get(key)
        if query is None:
            return None
        if self._is_due_again(query):
            query = self._begin(key)
        return self._take(key, query)

    def _take(self, key: tuple[str, str], query: _Query) -> int | None:
        count = query.task.result() if query.task.done() else None
        if count is not None and self._queries.get(key) is query:
            del self._queries[key]
        return count

    def _is_answered(self, query: _Query) -> bool:
        return query.task.done() and query.task.result() is not None

    def _is_due_again(self, query: _Query) -> bool:
        """Whether the query failed, long enough ago for a retry."""
        now = asyncio.get_running_loop().time()
        return (
            query.task.done() and query.task.result() is None and now >= query.began + RETRY_SECONDS
        )

    def _begin(self, key: tuple[str, str]) -> _Query:
        self._drop_earlier_days(key[1])
        loop = asyncio.get_running_loop()
        query = _Query(loop.time(), loop.create_task(self._query_ledger(*key)))
        self._queries[key] = query
        return query

    def _drop_earlier_days(self, day: str) -> None:
        """Drop the finished queries of days before the one before ``day``.

        Sessions that were opened before midnight still count against the day before.
        """
        oldest = next(iter(self._queries), None)
        before = (date.fromisoformat(day) - timedelta(days=1)).isoformat()
        if oldest is not None and oldest[1] < before:
            self._queries = {
                key: query
                for key, query in self._queries.items()
                if key[1] >= before or not query.task.done()
            }

    async def _query_ledger(self, organization_id: str, day: str) -> int | None:
        try:
            count = await self._used_before(organization_id, day)
        except Exception as error:  # no failure of the ledger may stop speech
            self._note_failure(type(error).__name__)
            return None
        self._failing = False
        return count

    def _note_failure(self, reason: str) -> None:
        if not self._failing:
            log.warning(
                "the ledger did not return today's characters (%s); daily quotas without a count "
                "start from 0 until it does",
                reason,
            )
        self._failing = True
