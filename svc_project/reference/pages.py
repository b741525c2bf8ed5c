"""The pages below /docs/: offline, without a sign-in, rendered once in a process.

They show only what GET /openapi.json makes public. Only the base URLs in the examples
depend on the request, and are put into the rendered text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import escape
from django.views.decorators.http import require_safe

from accounts.console.first_request import inference_url, speech_url
from accounts.console.snippets import KEY_VARIABLE
from svc_project.openapi import DOCUMENTS, MANAGEMENT
from svc_project.reference import error_guide, examples
from svc_project.reference.operations import Anchors, operations
from svc_project.surfaces import Surface

_EXAMPLES: Final = {
    Surface.INFERENCE: examples.inference_examples,
    Surface.SPEECH: examples.speech_examples,
    MANAGEMENT: examples.management_examples,
}
_BASE_URLS: Final = {
    Surface.INFERENCE: examples.INFERENCE,
    Surface.SPEECH: examples.SPEECH,
    MANAGEMENT: examples.MANAGEMENT,
}
_NO_CODE: Final = {
    "invalid_request_error": "invalid-field",
    "authentication_error": "invalid-credential",
    "not_found_error": "not-found",
}
"""Where the errors are explained that an operation of the inference surface names by their type."""
_BY_CODE: Final[Anchors] = lambda _status, name: _NO_CODE.get(name, name)  # noqa: E731  # typed
_ANCHORS: Final[Mapping[str, Anchors]] = {
    Surface.INFERENCE: _BY_CODE,
    MANAGEMENT: _BY_CODE,
    # Errors of this surface have no codes on the wire, so their statuses lead to them.
    Surface.SPEECH: lambda status, _name: f"speech-{status}",
}


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The way in: both references, the errors, and this gateway's addresses."""
    return _answer(request, _rendered("index"))


@require_safe
def reference(request: HttpRequest, document: str) -> HttpResponse:
    """The operations of one OpenAPI document."""
    return _answer(request, _rendered(document))


@require_safe
def error_codes(request: HttpRequest) -> HttpResponse:
    """Every error that the API answers, with its cause and its cure."""
    return _answer(request, _rendered("errors"))


def _answer(request: HttpRequest, page: str) -> HttpResponse:
    inference, speech = inference_url(request), speech_url(request)
    addresses = {
        examples.SPEECH.replace("https:", "wss:"): speech.replace("http", "ws", 1),
        examples.SPEECH.removesuffix("/v1"): speech.removesuffix("/v1"),
        examples.MANAGEMENT: inference.removesuffix("/v1") + "/manage/v1",
        examples.INFERENCE: inference,
    }
    for placeholder, address in addresses.items():
        page = page.replace(placeholder, escape(address))
    return HttpResponse(page)


@lru_cache(maxsize=8)
def _rendered(name: str) -> str:
    """Render one of the pages; ``name`` comes from the routes only."""
    if name == "errors":
        return _render("errors", **_error_context())
    if name == "index":
        return _render("index", inference=examples.INFERENCE, speech=examples.SPEECH)
    document = DOCUMENTS[name]()
    return _render(
        "reference",
        page=name,
        info=document["info"],
        base_url=_BASE_URLS[name],
        operations=operations(document, _EXAMPLES[name](), _ANCHORS[name]),
        key_variable=KEY_VARIABLE,
    )


def _render(template: str, **context: Any) -> str:
    return render_to_string(f"docs/{template}.html", {"page": template, **context})


def _error_context() -> dict[str, Any]:
    return {
        "sections": error_guide.sections(),
        "statuses": error_guide.speech_statuses(),
        "closes": error_guide.closes(),
        "violations": error_guide.VIOLATIONS,
    }
