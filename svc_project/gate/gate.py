"""The gate in front of Django: bounds what a request costs before and while a view answers it.

A body is read only where a view takes one, in memory, with a bound and a timeout; elsewhere Django
gets an empty one. A view runs in one of a fixed number of threads, each with at most one database
connection. Callers with a known key or session have most of the threads and strangers the rest, so
neither can use up the other's, and no caller more than its share. A thread is released before the
answer is sent, so a client that reads slowly holds none; the memory for the answer it holds until
it has read it, and has a limited time for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, ClassVar, Final

from django.conf import settings
from django.template.loader import render_to_string

from accounts.keys.callers import caller_of, organization_of
from accounts.keys.header import shown_prefix
from core.asgi.http import JSON_TYPE, Header, HttpConsumer
from core.errors import ApiError, ServerOverloaded
from core.monitoring.observation import WHY
from core.sharing.places import held_bodies
from speech.voices.pronunciations import wire as pronunciations
from svc_project.gate.caller_threads import ThreadTurn, threads_for
from svc_project.page_headers import PAGE_HEADERS
from svc_project.surfaces import Application, Receive, Send, Surface, error_body_of

LARGEST_FORM: Final = {"/console/": 64 * 1024, "/admin/": 1024 * 1024}
"""The largest body of a page's form in bytes, by the prefix of the path."""

LARGEST_BODY: Final = {
    **LARGEST_FORM,
    "/manage/v1/catalog": 1024 * 1024,
    "/manage/": 64 * 1024,
}
"""The largest body in bytes, by the first prefix that the path has; other views take none."""

LARGEST_SPEECH_BODY: Final = {"/v1/pronunciations": pronunciations.LARGEST_BODY}
"""The largest body in bytes of a POST on the speech surface, by path; other views take none."""

_WITH_BODY: Final = dict.fromkeys(
    LARGEST_BODY.keys() - LARGEST_FORM.keys(), frozenset({"POST", "PUT", "PATCH"})
)
"""The methods with a body, by the prefix of the path; of pages it is POST alone."""

_PART_BYTES: Final = 64 * 1024
"""The most that is handed to the server at once, whose own buffer is not counted."""

RETRY_SECONDS: Final = 2
"""``retry-after`` of a refusal."""


class TooBusy(ServerOverloaded):
    """All threads or memory are taken, and the queue is full or the wait timed out."""

    def __init__(self) -> None:
        super().__init__(headers={"retry-after": str(RETRY_SECONDS)})


class Gate:
    """Passes requests of ``SurfaceRouter`` to ``django``. One for a process and its event loop."""

    def __init__(self, django: Application) -> None:
        self.django = django

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        kind = _SpeechPage if scope["surface"] is Surface.SPEECH else _Page
        await kind(self.django)(scope, receive, send)


class _Page(HttpConsumer):
    """One request that Django answers.

    The answer is collected, and sent after the thread is released. A stream, recognized by its
    missing length, is passed on as it comes and holds no thread meanwhile. Only a stream detects a
    disconnect of the client: a view runs to its end in any case.
    """

    surface: ClassVar[str] = Surface.INFERENCE
    route: ClassVar[str] = "pages"
    body_seconds: ClassVar[float] = settings.SVC_BODY_SECONDS

    def __init__(self, django: Application) -> None:
        super().__init__()
        self._django = django
        self._body_given = False
        self._streams = asyncio.Event()
        self._head: dict[str, Any] = {}
        self._parts: list[bytes] = []
        self._answer_bytes = 0
        self._is_too_much = False
        """Whether the answer exceeds the memory for answers."""
        self._body = b""
        self._thread: ThreadTurn | None = None

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._begin()
        self._caller = caller_of(scope)
        self._threads = threads_for(self._caller)
        if self._caller.is_known:
            self.owner = self._caller.name
        if self.observed is not None:
            self.observed.key_prefix = shown_prefix(scope["headers"])
        try:
            await self.answer()
        except ServerOverloaded:
            await self._fail(TooBusy())
        except ApiError as error:
            if self._streams.is_set():
                # The server closes the connection: a cut stream must not look complete.
                raise
            await self._fail(error)
        finally:
            self.release_place()
            self._release_form()
            self._release_answer()
            self._finish()

    async def answer(self) -> None:
        largest = _largest_body(self.scope)
        if largest:
            self._body = await self.read_body(largest)
            self.release_place()
        if self.disconnected:
            return
        async with self._threads.thread(self._caller.name) as self._thread:
            if self._has_disconnected():
                return
            await self._django(self.scope, self._receive_for_django, self._send_from_django)
        if self._is_too_much:
            raise ServerOverloaded
        if not self._streams.is_set():
            await self._send_answer()

    def render_error(self, error: ApiError) -> bytes:
        if _is_page(self.scope):
            return _refused_page(error.status, error.message)
        return error_body_of(Surface(self.surface), error)

    async def start(
        self, status: int, headers: Iterable[Header], *, is_answer: bool = True
    ) -> None:
        """Give an error on a page the headers of a page."""
        if _is_page(self.scope):
            headers = [*(each for each in headers if each != JSON_TYPE), *PAGE_HEADERS]
        await super().start(status, headers, is_answer=is_answer)

    async def _fail(self, error: ApiError) -> None:
        """Hold nothing while the error waits for a client that has not read earlier answers."""
        self._release_form()
        self._release_answer()
        await super()._fail(error)

    def _hold(self, size: int) -> None:
        self._threads.forms.take(size, self._caller.name, self._held)
        try:
            super()._hold(size)
        except ServerOverloaded:
            self._threads.forms.release(size, self._caller.name)
            raise

    def _release_form(self) -> None:
        self._threads.forms.release(self._held, self._caller.name)
        held_bodies.release(self._held, self.owner)
        self._held = 0

    def _release_answer(self) -> None:
        self._threads.answers.release(self._answer_bytes, self._caller.name)
        self._answer_bytes = 0
        self._parts = []

    def _has_disconnected(self) -> bool:
        """Whether the client disconnected while it waited. Always False on other servers."""
        connection = self.scope.get("svc.connection")
        return connection is not None and connection.has_disconnected()

    async def _receive_for_django(self) -> dict[str, Any]:
        """Django's ``receive``: the body, then the disconnect."""
        if not self._body_given:
            self._body_given = True
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        await self._streams.wait()
        while (message := await self._receive())["type"] == "http.request":
            pass
        return message

    async def _send_from_django(self, message: dict[str, Any]) -> None:
        """Django's ``send``: collects the answer, or passes on a stream."""
        if self._streams.is_set():
            await self._send(message)
        elif message["type"] == "http.response.start":
            self._head = message
        elif not self._parts and message.get("more_body") and not _has_length(self._head):
            self._streams.set()
            if self._thread is not None:
                self._thread.release()
            self.status = self._head["status"]
            self._mark_first_byte()
            await self._send(self._head)
            await self._send(message)
        elif not self._is_too_much:
            self._collect(message.get("body", b""))

    def _collect(self, part: bytes) -> None:
        try:
            self._threads.answers.take(len(part), self._caller.name, self._answer_bytes)
        except ServerOverloaded:
            self._is_too_much = True
            return
        self._answer_bytes += len(part)
        self._parts.append(part)

    async def _send_answer(self) -> None:
        self._release_form()
        self.started = True
        self.status = self._head["status"]
        self._mark_first_byte()
        cut = self._cut_when_unread()
        try:
            await self._send(self._head)
            *pieces, last = self._pieces()
            for piece in pieces:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            await self._send({"type": "http.response.body", "body": last})
        finally:
            if cut is not None:
                cut.cancel()

    def _mark_first_byte(self) -> None:
        if self.observed is not None:
            self.observed.mark_first_byte()

    def organization(self) -> str | None:
        # A view may have recognized the caller since.
        return organization_of(self._caller) or organization_of(caller_of(self.scope))

    def _finish(self) -> None:
        if self.observed is not None and (why := self.scope.get(WHY)) is not None:
            self.observed.code, self.observed.reason = why
        super()._finish()

    def _pieces(self) -> Iterator[bytes]:
        for part in self._parts:
            for begin in range(0, len(part) or 1, _PART_BYTES):
                yield part[begin : begin + _PART_BYTES]

    def _cut_when_unread(self) -> asyncio.TimerHandle | None:
        """End the connection of a client that does not read its answer in time.

        It has as long as for a body, and longer for a large answer, at the slowest pace that a
        download may have. None on other servers.
        """
        connection = self.scope.get("svc.connection")
        if connection is None:
            return None
        seconds = settings.SVC_BODY_SECONDS + (
            self._answer_bytes / settings.SVC_EXPORT_BYTES_PER_SECOND
        )
        loop = asyncio.get_running_loop()
        return loop.call_later(seconds, connection.transport.abort)


class _SpeechPage(_Page):
    surface: ClassVar[str] = Surface.SPEECH


def _largest_body(scope: dict[str, Any]) -> int:
    path: str = scope["path"]
    if scope["surface"] is Surface.SPEECH:
        return LARGEST_SPEECH_BODY.get(path, 0) if scope["method"] == "POST" else 0
    prefix = next((begin for begin in LARGEST_BODY if path.startswith(begin)), "")
    takes_body = scope["method"] in _WITH_BODY.get(prefix, ("POST",))
    return LARGEST_BODY.get(prefix, 0) if takes_body else 0


def _is_page(scope: dict[str, Any]) -> bool:
    path: str = scope["path"]
    return scope["surface"] is Surface.INFERENCE and path.startswith(tuple(LARGEST_FORM))


def _has_length(head: dict[str, Any]) -> bool:
    return any(name.lower() == b"content-length" for name, _ in head["headers"])


@lru_cache(maxsize=64)
def _refused_page(status: int, message: str) -> bytes:
    return render_to_string("refused.html", {"status": status, "message": message}).encode()
