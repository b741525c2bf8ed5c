"""The base of the admin pages of chat and speech backends: a key stays with its address, and a page
tests the backend by requests as the gateway sends them.

Both models have the columns ``base_url`` and ``api_key_env``.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from core.variables import PREFIX

if TYPE_CHECKING:  # generic in the stubs only
    BackendModelForm = forms.ModelForm[Any]
    BackendModelAdmin = admin.ModelAdmin[Any]
else:
    BackendModelForm = forms.ModelForm
    BackendModelAdmin = admin.ModelAdmin

AGAIN: Final = "key_variable_again"


class KeptKeyForm(BackendModelForm):
    """Refuses another base URL for a backend with a key, unless the key's variable is retyped."""

    key_variable_again = forms.CharField(
        label="API key variable, again",
        required=False,
        max_length=100,
        help_text="Only to give a backend with a key another base URL: the key goes there then.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "api_key_env" in self.fields:
            self.fields["api_key_env"].help_text = (
                "Name of the environment variable that holds the backend's key. It begins with "
                f"{PREFIX}, or is listed in SVC_BACKEND_KEY_VARIABLES. Empty: no key."
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address, variable = cleaned.get("base_url"), cleaned.get("api_key_env")
        if self.instance._state.adding or not address or not variable:
            return cleaned
        is_moved = address.rstrip("/") != self.initial["base_url"].rstrip("/")
        is_kept = variable == self.initial["api_key_env"]
        if is_moved and is_kept and cleaned.get(AGAIN) != variable:
            self.add_error(
                AGAIN,
                f"The key in {variable} would go to another address. Type {variable} here if it "
                "should, or empty the API key variable.",
            )
        return cleaned


class KeptKeyAdmin(BackendModelAdmin):
    form = KeptKeyForm

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Add the field for the variable where an existing row may be changed."""
        asks = obj is not None and self.has_change_permission(request, obj)
        return [
            (title, {**options, "fields": _asking(options["fields"], asks=asks)})
            for title, options in super().get_fieldsets(request, obj)
        ]


def _asking(fields: Any, *, asks: bool) -> list[Any]:
    kept = [field for field in fields if field != AGAIN]
    if asks and "api_key_env" in kept:
        kept.insert(kept.index("api_key_env") + 1, AGAIN)
    return kept


TEST_SECONDS: Final = 30.0
"""How long a whole test may take."""


@dataclass(frozen=True, slots=True)
class Link:
    """A page where something that is missing is added; ``rights`` are all needed to open it."""

    label: str
    address: str
    rights: tuple[str, ...] = ()


class StepFailed(Exception):
    """A step failed; the message says why, in words for operators."""

    def __init__(self, words: str, links: tuple[Link, ...] = ()) -> None:
        super().__init__(words)
        self.links = links


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that was tried."""

    label: str
    passed: bool
    words: str
    milliseconds: int
    links: tuple[Link, ...] = ()


async def try_step(label: str, work: Callable[[], Awaitable[str]]) -> Step:
    """Run ``work``, which returns what it found or raises ``StepFailed``, and time it."""
    began = time.monotonic()
    links: tuple[Link, ...] = ()
    try:
        words, passed = await work(), True
    except StepFailed as failure:
        words, passed, links = str(failure), False, failure.links
    return Step(label, passed, words, round((time.monotonic() - began) * 1000), links)


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

    def keep_test(self, backend: Any, steps: list[Step]) -> None:
        """Keep what a test found, where that is shown elsewhere."""

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
            self.keep_test(backend, found)
            found = [_for_viewer(step, request) for step in found]
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


def _for_viewer(step: Step, request: HttpRequest) -> Step:
    """``step`` without the links that the viewer may not open."""
    links = tuple(each for each in step.links if request.user.has_perms(each.rights))
    return replace(step, links=links)


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
