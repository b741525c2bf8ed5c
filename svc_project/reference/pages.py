"""The pages below /docs/: offline, without a sign-in, rendered once in a process.

They show only what GET /openapi.json makes public, and to a member of an organization its models.
What depends on the request is put into the rendered text: addresses, and the names in examples.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from accounts.console.snippets import KEY_VARIABLE
from inference.console.models import serving_lines
from svc_project.openapi import DOCUMENTS, printed
from svc_project.reference import error_guide, examples, search
from svc_project.reference.documents import BASE_URLS, operations_of
from svc_project.reference.guides import GUIDES, text_of
from svc_project.reference.readers import ANYBODY, filled, reader_of

_GUIDE: Final = "guide"


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """The way in: guides, references, errors, and this gateway's addresses."""
    return _answer(request, "index")


@require_safe
def guide(request: HttpRequest, name: str) -> HttpResponse:
    """One guide."""
    if name not in GUIDES:
        raise Http404
    return _answer(request, _GUIDE, name)


@require_safe
def reference(request: HttpRequest, document: str) -> HttpResponse:
    """The operations of one OpenAPI document."""
    return _answer(request, "reference", document)


@require_safe
def download(request: HttpRequest, document: str) -> HttpResponse:
    """An OpenAPI document as a file."""
    name = f'attachment; filename="openapi-{document}.json"'
    return HttpResponse(
        printed(document),
        content_type="application/json",
        headers={"content-disposition": name},
    )


@require_safe
def error_codes(request: HttpRequest) -> HttpResponse:
    """Every error that the API answers, with its cause and its cure."""
    return _answer(request, "errors")


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """The models of the reader's organization with their prices."""
    reader = reader_of(request)
    lines = serving_lines() if reader.organization else []
    page = _render("models", reader.organization is not None, lines=lines)
    return HttpResponse(filled(page, request, reader))


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """What the docs have about ``q``; with ``format=json`` for the script of the search field."""
    query = request.GET.get("q", "")[: search.LONGEST]
    found = search.find(query)
    if request.GET.get("format") == "json":
        answer = json.dumps({"found": [asdict(each) for each in found]})
        return HttpResponse(filled(answer, request, ANYBODY), content_type="application/json")
    reader = reader_of(request)
    page = _render("search", reader.organization is not None, found=found, query=query)
    return HttpResponse(filled(page, request, reader))


def _answer(request: HttpRequest, template: str, name: str = "") -> HttpResponse:
    reader = reader_of(request)
    page = _rendered(template, name, reader.organization is not None)
    return HttpResponse(filled(page, request, reader))


@lru_cache(maxsize=2 * (len(GUIDES) + len(DOCUMENTS) + 2))
def _rendered(template: str, name: str, is_signed_in: bool) -> str:
    """Render one of the pages; ``template`` and ``name`` come from the routes only."""
    if template == _GUIDE:
        return _render(template, is_signed_in, guide=GUIDES[name], text=text_of(name))
    if template == "errors":
        return _render(template, is_signed_in, **_error_context())
    if template == "index":
        addresses = {"inference": examples.INFERENCE, "speech": examples.SPEECH}
        return _render(template, is_signed_in, **addresses)
    info = DOCUMENTS[name]()["info"]
    about, end, rules = info["description"].partition(". ")
    return _render(
        template,
        is_signed_in,
        page=name,
        info=info,
        about=about + end,
        rules=rules,
        base_url=BASE_URLS[name],
        operations=operations_of(name),
        key_variable=KEY_VARIABLE,
    )


def _render(template: str, is_signed_in: bool, **context: Any) -> str:
    frame = {
        "page": template,
        "guides": GUIDES.values(),
        "is_signed_in": is_signed_in,
        "model": examples.MODEL,
        "longest_query": search.LONGEST,
    }
    return render_to_string(f"docs/{template}.html", {**frame, **context})


def _error_context() -> dict[str, Any]:
    return {
        "sections": error_guide.sections(),
        "statuses": error_guide.speech_statuses(),
        "closes": error_guide.closes(),
        "violations": error_guide.VIOLATIONS,
    }
