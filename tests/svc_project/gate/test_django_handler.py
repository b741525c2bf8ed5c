"""Django behind the gate: one call in one thread, which gives way to the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path

from svc_project.gate.caller_threads import CallerThreads
from svc_project.gate.django_handler import OneCallHandler

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
