"""Callers on an event loop that wait for a thread's answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from core.database.threads import DatabaseThreads


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_that_comes_with_the_answer_is_not_lost() -> None:
    """``clear`` and the end of a session wait for what they cancel, and would wait for ever."""
    threads = DatabaseThreads("test", 1)
    may_answer = threading.Event()

    async def cancelled_with_the_answer() -> bool:
        waiting = asyncio.create_task(threads.run(may_answer.wait))
        await asyncio.sleep(0)
        may_answer.set()
        threads.close()  # blocks the loop until the thread has answered
        # After the answer, which is on the loop already, and before its reader goes on.
        asyncio.get_running_loop().call_soon(waiting.cancel)
        await asyncio.wait({waiting})
        return waiting.cancelled()

    assert asyncio.run(cancelled_with_the_answer())
