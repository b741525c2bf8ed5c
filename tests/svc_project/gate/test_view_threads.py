"""The threads that run views: which one is lent, its priority, and when its connections close."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path

from svc_project.gate import view_threads
from svc_project.gate.caller_threads import CallerThreads
from svc_project.gate.django_handler import OneCallHandler
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


SEEN: list[threading.Thread] = []


def seen(request: HttpRequest) -> HttpResponse:
    SEEN.append(threading.current_thread())
    return HttpResponse(b"seen")


urlpatterns = [path("seen", seen)]

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "GET",
    "path": "/seen",
    "raw_path": b"/seen",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1")],
    "http_version": "1.1",
    "scheme": "http",
    "server": ("127.0.0.1", 8000),
    "client": ("127.0.0.1", 5000),
}


async def answered(threads: CallerThreads) -> list[dict[str, Any]]:
    """The messages of a response to a request in one of ``threads``."""
    waiting = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()  # the client stays
        return waiting.pop()

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(dict(message))

    async with threads.thread("a"):
        await OneCallHandler()(SCOPE, receive, send)
    return sent


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
@override_settings(ROOT_URLCONF=__name__)
async def test_a_view_runs_in_its_callers_thread_behind_the_event_loop() -> None:
    SEEN.clear()
    sent = await answered(CallerThreads(1, form_bytes=1000, answer_bytes=1000))

    (thread,) = SEEN
    assert thread.name.startswith("django")
    assert os.getpriority(os.PRIO_PROCESS, thread.native_id or 0) > os.getpriority(
        os.PRIO_PROCESS, os.getpid()
    )
    assert sent[0]["status"] == 200
    assert b"".join(message.get("body", b"") for message in sent) == b"seen"
    # What the middleware sets is there too.
    assert b"x-request-id" in {name.lower() for name, _ in sent[0]["headers"]}
