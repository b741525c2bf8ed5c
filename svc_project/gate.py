"""The gate in front of Django: what a request may cost before and while a view answers it.

A body is read only where a view takes one, in memory, within a bound and a time; elsewhere Django is
given an empty one. A view runs in one of a fixed number of threads, each with at most one database
connection. Callers with a known key or session have most of the threads and strangers the rest, so
neither can use up the other's, and no caller more than a share of them. A place is given back before
the answer is sent, so a client that reads slowly holds none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, ClassVar, Final

from django.conf import settings
from django.template.loader import render_to_string

from svc_project.callers import caller_of
from svc_project.crowds import Place, crowd_of
from svc_project.lib.bodies import held_bodies
from svc_project.lib.errors import ApiError, ServerOverloaded
from svc_project.lib.http import JSON_TYPE, Header, HttpConsumer
from svc_project.middleware import PAGE_HEADERS
from svc_project.surfaces import Application, Receive, Send, Surface, error_body_of

LARGEST_FORM: Final = {"/console/": 64 * 1024, "/admin/": 1024 * 1024}
"""Bytes of a body, by the beginning of the path; elsewhere no view takes one."""

RETRY_SECONDS: Final = 2
"""``retry-after`` of a refusal."""


class TooBusy(ServerOverloaded):
    """Threads or memory are taken, and too many wait already or this one has waited long enough."""

    def __init__(self) -> None:
        super().__init__(headers={"retry-after": str(RETRY_SECONDS)})


class Gate:
    """``SurfaceRouter``'s way to ``django``: one for a process, used on its event loop."""

    def __init__(self, django: Application) -> None:
        self.django = django

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        kind = _SpeechPage if scope["surface"] is Surface.SPEECH else _Page
        await kind(self.django)(scope, receive, send)


class _Page(HttpConsumer):
    """One request that Django answers.

    The answer is collected and sent when the thread is free again, but for a stream, which Django
    announces by no length: that is passed on as it comes, and holds no thread meanwhile. A client
    that leaves is noticed by a stream only: a view runs to its end, whoever reads its answer.
    """

    surface: ClassVar[str] = Surface.INFERENCE
    route: ClassVar[str] = "pages"
    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS

    def __init__(self, django: Application) -> None:
        super().__init__()
        self._django = django
        self._given = False
        self._streams = asyncio.Event()
        self._head: dict[str, Any] = {}
        self._parts: list[bytes] = []
        self._answer_bytes = 0
        self._is_too_much = False
        """There is no memory for the answer."""
        self._body = b""
        self._thread: Place | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._caller = caller_of(scope)
        self._crowd = crowd_of(self._caller)
        if self._caller.is_known:
            self.owner = self._caller.name
        try:
            await self.answer()
        except ServerOverloaded:
            await self._fail(TooBusy())
        except ApiError as error:
            await self._fail(error)
        finally:
            self.let_go()
            self._let_go_of_form()
            self._crowd.answers.give_back(self._caller.name, self._answer_bytes)
            self._count()

    async def answer(self) -> None:
        largest = _largest_form(self.scope)
        if largest:
            self._body = await self.read_body(largest)
            self.let_go()
        if self.gone:
            return
        async with self._crowd.thread(self._caller.name) as self._thread:
            if self._has_left():
                return
            await self._django(self.scope, self._give, self._take)
        if self._is_too_much:
            raise ServerOverloaded
        if not self._streams.is_set():
            await self._hand_over()

    def render_error(self, error: ApiError) -> bytes:
        if _is_page(self.scope):
            return _refused_page(error.status, error.message)
        return error_body_of(Surface(self.surface), error)

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Also says that an error on a page is one."""
        if _is_page(self.scope):
            headers = [*(each for each in headers if each != JSON_TYPE), *PAGE_HEADERS]
        await super().start(status, headers)

    def _hold(self, size: int) -> None:
        self._crowd.forms.take(self._caller.name, size, self._held)
        try:
            super()._hold(size)
        except ServerOverloaded:
            self._crowd.forms.give_back(self._caller.name, size)
            raise

    def _let_go_of_form(self) -> None:
        self._crowd.forms.give_back(self._caller.name, self._held)
        held_bodies.give_back(self._held, self.owner)
        self._held = 0

    def _has_left(self) -> bool:
        """Whether the client hung up while it waited. Known of our own server only."""
        connection = self.scope.get("svc.connection")
        return connection is not None and connection.transport.is_closing()

    async def _give(self) -> dict[str, Any]:
        """What Django receives."""
        if not self._given:
            self._given = True
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        await self._streams.wait()
        while (message := await self._receive())["type"] == "http.request":
            pass
        return message

    async def _take(self, message: dict[str, Any]) -> None:
        """What Django sends."""
        if self._streams.is_set():
            await self._send(message)
        elif message["type"] == "http.response.start":
            self._head = message
        elif not self._parts and message.get("more_body") and not _has_length(self._head):
            self._streams.set()
            if self._thread is not None:
                self._thread.leave()
            self.status = self._head["status"]
            await self._send(self._head)
            await self._send(message)
        elif not self._is_too_much:
            self._collect(message.get("body", b""))

    def _collect(self, part: bytes) -> None:
        try:
            self._crowd.answers.take(self._caller.name, len(part), self._answer_bytes)
        except ServerOverloaded:
            self._is_too_much = True
            return
        self._answer_bytes += len(part)
        self._parts.append(part)

    async def _hand_over(self) -> None:
        self._let_go_of_form()
        self.started = True
        self.status = self._head["status"]
        await self._send(self._head)
        last = self._parts.pop()
        for part in self._parts:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        await self._send({"type": "http.response.body", "body": last})


class _SpeechPage(_Page):
    surface: ClassVar[str] = Surface.SPEECH


def _largest_form(scope: dict[str, Any]) -> int:
    if scope["method"] != "POST" or scope["surface"] is Surface.SPEECH:
        return 0
    return next(
        (most for begin, most in LARGEST_FORM.items() if scope["path"].startswith(begin)), 0
    )


def _is_page(scope: dict[str, Any]) -> bool:
    path: str = scope["path"]
    return scope["surface"] is Surface.INFERENCE and path.startswith(tuple(LARGEST_FORM))


def _has_length(head: dict[str, Any]) -> bool:
    return any(name.lower() == b"content-length" for name, _ in head["headers"])


@lru_cache(maxsize=64)
def _refused_page(status: int, message: str) -> bytes:
    return render_to_string("refused.html", {"status": status, "message": message}).encode()
