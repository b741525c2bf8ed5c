"""The threads that run views: which one is lent, and when its connections close."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import connection

from svc_project.gate import view_threads
from svc_project.gate.view_threads import ViewThread, ViewThreads
from tests.support.until import until_async


async def opened(thread: ViewThread) -> Any:
    """Open a connection in ``thread`` and return Django's wrapper of it."""

    def open_one() -> Any:
        connection.ensure_connection()
        return connection._connections[connection._alias]  # type: ignore[attr-defined]

    return await asyncio.wrap_future(thread.submit(open_one))


async def until_closed(wrapper: Any) -> None:
    await until_async(lambda: wrapper.connection is None)


@pytest.mark.django_db(transaction=True)
async def test_the_connections_of_a_thread_close_when_it_was_not_used_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view_threads, "KEPT_SECONDS", 0.05)
    threads = ViewThreads()
    used, other = threads.take(), threads.take()
    wrapper, closed = await opened(used), await opened(other)

    threads.give_back(other)
    await until_closed(closed)
    assert wrapper.connection is not None, "a request in progress lost its connection"

    threads.give_back(used)
    await until_closed(wrapper)
    await threads.close()


@pytest.mark.django_db(transaction=True)
async def test_the_end_closes_the_connections_of_free_threads() -> None:
    threads = ViewThreads()
    used = threads.take()
    wrapper = await opened(used)
    threads.give_back(used)

    await threads.close()

    assert wrapper.connection is None


async def test_the_thread_that_was_used_last_is_lent_first() -> None:
    threads = ViewThreads()
    first, second = threads.take(), threads.take()
    threads.give_back(second)
    threads.give_back(first)

    assert threads.take() is first
    assert threads.take() is second
    assert threads.take() not in (first, second)


async def test_a_thread_that_ran_no_view_is_not_started_to_close_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view_threads, "KEPT_SECONDS", 0.0)
    started: list[None] = []
    threads = ViewThreads(lambda: started.append(None))
    threads.give_back(threads.take())
    await asyncio.sleep(0.01)  # the timer
    await threads.close()

    assert not started
