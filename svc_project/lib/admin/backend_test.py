"""The page that tests a backend: it sends requests as the gateway would, and says what came back."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from svc_project.lib.admin.kept_keys import KeptKeyAdmin

TEST_SECONDS: Final = 30.0
"""How long a whole test may take."""


class StepFailed(Exception):
    """A step failed; the message says why, in words for operators."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was tried."""

    label: str
    passed: bool
    words: str
    milliseconds: int


async def try_step(label: str, work: Callable[[], Awaitable[str]]) -> Step:
    """Run ``work``, which returns what it found or raises ``StepFailed``, and time it."""
    began = time.monotonic()
    try:
        words, passed = await work(), True
    except StepFailed as failure:
        words, passed = str(failure), False
    return Step(label, passed, words, round((time.monotonic() - began) * 1000))


async def failed(step: Step) -> AsyncIterator[Step]:
    """The steps of a test that cannot begin because of ``step``."""
    yield step


class TestedBackendAdmin(KeptKeyAdmin):
    """Adds the page of the test, for operators who may change the backend: it sends its key."""

    change_form_template = "admin/backend_change_form.html"
    test_words: str
    """What the test sends."""

    @abstractmethod
    def steps(self, backend: Any) -> AsyncIterator[Step]:
        """Read what a test of ``backend`` needs, and return its steps, which use no database."""

    @abstractmethod
    def record_test(self, backend: Any) -> None:
        """Write the test of ``backend`` into the audit log: it sends the backend's key."""

    def get_urls(self) -> list[URLPattern]:
        named = f"{self.opts.app_label}_{self.opts.model_name}_test"
        page = path("<path:object_id>/test/", self.admin_site.admin_view(self._page), name=named)
        return [page, *super().get_urls()]

    def _page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        backend = self.get_object(request, unquote(object_id))
        if backend is None:
            raise Http404
        if not self.has_change_permission(request, backend):
            raise PermissionDenied
        found: list[Step] | None = None
        if request.method == "POST":
            self.record_test(backend)
            found = asyncio.run(_collect(self.steps(backend)))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Test {backend}",
            "opts": self.opts,
            "backend": backend,
            "words": self.test_words,
            "steps": found,
            "passed": bool(found) and all(step.passed for step in found or ()),
        }
        return TemplateResponse(request, "admin/backend_test.html", context)


async def _collect(steps: AsyncIterator[Step]) -> list[Step]:
    """Read ``steps`` for ``TEST_SECONDS`` at most; the one that takes longer has failed."""
    found: list[Step] = []
    began = time.monotonic()
    try:
        async with asyncio.timeout(TEST_SECONDS):
            async for step in steps:
                found.append(step)  # noqa: PERF401  # what passed before a timeout is kept
    except TimeoutError:
        words = f"the test was stopped after {TEST_SECONDS:.0f} s"
        found.append(Step("Rest", False, words, round((time.monotonic() - began) * 1000)))
    return found
